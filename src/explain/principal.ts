/** The caller that a question is about: a user, an API key, a guest, or one who is made up. */
import { hintOf, nearest } from '../../grammar/suggest.ts';
import { GUEST, GUEST_ROW } from '../policy/check/guests.ts';
import { scalarOf } from '../policy/scalar-types.ts';
import type { Action, PolicyRequest, Row } from '../policy/types.ts';
import { datetimeOf, parseUuid } from '../policy/values.ts';
import { echo, Problem, pointerPart, type TextPlace } from '../problem.ts';
import type { Store } from '../records/access-context.ts';
import { findSystem } from '../records/system.ts';
import { isObject } from '../records/write/input.ts';
import { effectiveRoles, rolesOfSession } from '../schema/model/effective-roles.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { normalEmail } from '../schema/model/normal-email.ts';
import { sql, text, uuid } from '../sql.ts';
import { SESSION_TYPES } from './session-types.ts';

/** `place`: of an error in a text. */
export type ReportAsked = (pointer: string, code: string, detail: string, place?: TextPlace) => undefined;

/** As named in a question. A user is named by email or id; a made-up one is given as policies see it. */
export type AskedCaller =
  | { readonly kind: 'user'; readonly name: string }
  | { readonly kind: 'key'; readonly id: string }
  | { readonly kind: 'row'; readonly row: Row };

/** Its id, email and fields are absent, so that what compares them is unknown. */

export function readPrincipal(given: unknown, schema: Schema, report: ReportAsked): AskedCaller | undefined {
  if (given === GUEST) return { kind: 'row', row: GUEST_ROW };
  if (typeof given === 'string') return { kind: 'user', name: given };
  if (!isObject(given))
    return report('/as', 'wrong_type', 'expected an email, an id, `guest`, {"key": id} or {"roles": […], …}');
  const { key, roles, ...members } = given;
  if (key !== undefined) {
    if (typeof key !== 'string') return report('/as/key', 'wrong_type', 'expected the id of a key');
    return { kind: 'key', id: key };
  }
  if (roles === undefined) return report('/as/roles', 'required', 'expected the roles of the caller, such as []');
  const known = rolesIn(roles, schema, report);
  const row = membersIn(members, schema.collections.get('users')!, report);
  return { kind: 'row', row: { second_factor: false, ...row, roles: known } };
}

function rolesIn(given: unknown, schema: Schema, report: ReportAsked): readonly string[] {
  if (!Array.isArray(given)) {
    report('/as/roles', 'wrong_type', 'expected a list of roles');
    return [];
  }
  for (const [i, role] of given.entries()) {
    if (role === GUEST || schema.roles.has(role)) continue;
    const hint = hintOf(nearest(String(role), schema.roles.keys()));
    report(`/as/roles/${i}`, 'unknown_role', `unknown role \`${echo(String(role))}\`${hint}`);
  }
  return given.includes(GUEST) ? [GUEST] : effectiveRoles(schema, given);
}

/** A field and a belongs_to as JSON has them. */
function membersIn(given: Row, users: Collection, report: ReportAsked): Row {
  const row: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const type = typeOfMember(users, name);
    const pointer = `/as/${pointerPart(name)}`;
    if (type === undefined) {
      const references = [...users.relations.values()].flatMap((each) => (each.kind === 'belongs_to' ? each.name : []));
      const names = ['id', 'roles', ...SESSION_TYPES.keys(), ...users.fields.keys(), ...references];
      report(pointer, 'unknown_key', `\`users\` has no field \`${echo(name)}\`${hintOf(nearest(name, names))}`);
      continue;
    }
    const read = value === null ? null : scalarOf(type).readJson(value);
    if (read === undefined) report(pointer, 'wrong_type', `expected ${scalarOf(type).label}`);
    else row[name] = read;
  }
  return row;
}

function typeOfMember(users: Collection, name: string) {
  if (name === 'id') return { id: 'users' };
  if (SESSION_TYPES.has(name)) return SESSION_TYPES.get(name);
  const relation = users.relations.get(name);
  if (relation?.kind === 'belongs_to') return { id: relation.collection };
  return users.fields.get(name)?.type;
}

export interface AskingCaller extends Pick<PolicyRequest, 'auth' | 'kind'> {
  /** The limit of a key. Default: every action. */
  readonly allows?: (collection: string, action: Action) => boolean;
}
/** Finds an API key in force. */
export type FindKey = (id: string) => Promise<AskingCaller | undefined>;

interface CallerPlace {
  /** Default: no key is known. */
  readonly findKey?: FindKey | undefined;
  /** The place of the caller in the body. */
  readonly pointer?: string;
}

const isGuest = ({ roles }: Row): boolean => Array.isArray(roles) && roles.includes(GUEST);

/** Throws `not_found`. */
export async function principalOf(
  store: Store,
  subject: AskedCaller,
  { findKey, pointer = '/as' }: CallerPlace = {},
): Promise<AskingCaller> {
  if (subject.kind === 'row') return { auth: subject.row, kind: isGuest(subject.row) ? 'guest' : 'user' };
  if (subject.kind === 'key') {
    const id = parseUuid(subject.id);
    const key = id === undefined ? undefined : await findKey?.(id);
    return key ?? unknownCaller(`no key in force has the id \`${echo(subject.id)}\``, pointer);
  }
  const { name } = subject;
  const id = parseUuid(name);
  const where = id === undefined ? sql`t.email = ${text(normalEmail(name))}` : sql`t.id = ${uuid(id)}`;
  const isStorable = !name.includes('\0');
  const [found] = isStorable ? await findSystem(store, store.db, { collection: 'users', where }) : [];
  if (found === undefined)
    return unknownCaller(`no user has the ${id === undefined ? 'email' : 'id'} \`${echo(name)}\``, pointer);
  const roles = rolesOfSession(store.schema, found.roles as readonly string[], false);
  // A user who signs in now, without a second factor.
  const session = { second_factor: false, signed_in_at: datetimeOf(new Date()) };
  return { auth: { ...found, roles, ...session }, kind: 'user' };
}

function unknownCaller(detail: string, pointer: string): never {
  throw new Problem('not_found', detail, { errors: [{ pointer, code: 'not_found', detail }] });
}
