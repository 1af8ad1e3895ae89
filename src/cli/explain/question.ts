/** The arguments of `bylaw explain`: a caller, an action, and optionally a record or a write. */
import { ConfigError, unknownName } from '../../config.ts';
import { decide } from '../../policy/access.ts';
import { ACTIONS, type Action, type PolicyRequest, type Row } from '../../policy/types.ts';
import { datetimeOf, parseUuid } from '../../policy/values.ts';
import { type AccessContext, Store } from '../../records/access-context.ts';
import { findSystem } from '../../records/system.ts';
import { type Data, isObject } from '../../records/write/input.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Collection } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { sql, text, uuid } from '../../sql.ts';
import type { Arguments } from '../support/command.ts';
import type { IssueFilter } from '../support/schema-file.ts';
import type { OpenDatabase } from '../support/workspace.ts';

export interface Question {
  readonly store: Store;
  readonly collection: Collection;
  readonly action: Action;
  readonly request: PolicyRequest;
  /** `--record`. */
  readonly record: Row | undefined;
  /** `--set`, for a create or an update. */
  readonly data: Data | undefined;
  /** The data are those of a request; else a create is asked about without them. */
  readonly isComplete: boolean;
}

/** The warnings about the rules that the question is about: those of the action, and of members. */
export function isOfQuestion({ positionals: [collection = '', action = ''] }: Arguments): IssueFilter {
  const isReading = action === 'list' || action === 'read';
  const keys = isReading ? [action, 'view'] : [action];
  const ofRecord = keys.map((key) => `collections.${collection}.access.${key}`);
  const ofMember = `.access.${isReading ? 'read' : 'write'}`;
  const isIn = (path: string, rules: string): boolean =>
    path.startsWith(rules) && ['', '.', '['].includes(path.charAt(rules.length));
  return ({ path }) => {
    if (ofRecord.some((rules) => isIn(path, rules))) return true;
    const [, named, part = '', member, ...rest] = path.split('.');
    const isOfMember = named === collection && ['fields', 'relations'].includes(part) && member !== undefined;
    return action !== 'delete' && isOfMember && isIn(`.${rest.join('.')}`, ofMember);
  };
}

/** Throws ConfigError with all issues. */
export async function questionOf(args: Arguments, { db, schema }: OpenDatabase): Promise<Question> {
  const [name = '', givenAction = ''] = args.positionals;
  const collection = schema.collections.get(name);
  const action = ACTIONS.find((known) => known === givenAction);
  const issues = [
    ...(collection === undefined ? [unknownOf('collection', name, [...schema.collections.keys()])] : []),
    ...(action === undefined ? [unknownOf('action', givenAction, ACTIONS)] : []),
  ];
  if (collection === undefined || action === undefined) throw new ConfigError(issues);
  const isNew = args.has('record') && args.get('record') === '';
  if (isNew && action !== 'create')
    throw new ConfigError([`--record needs the id of a record; only a create has none`]);
  const data = dataArgument(args, action) ?? (isNew ? {} : undefined);
  const store = new Store(db, schema);
  const request: PolicyRequest = {
    auth: await callerByEmail(store, args.get('as')),
    query: queryArgument(args.all('query')),
    ...(data && { data }),
    now: datetimeOf(new Date()),
  };
  const record = isNew ? undefined : await recordArgument(store, collection, args.get('record'));
  const isComplete = args.has('set');
  return { store, collection, action, request, record, data, isComplete };
}

/** The access of the question's request. */
export function accessOf({ store, collection, request, action }: Question): AccessContext {
  const { data, ...others } = request;
  const { collections } = store.schema;
  const requestFor = (of: string, by: Action): PolicyRequest =>
    of === collection.name && by === action ? request : others;
  return {
    collection,
    permit: (of, by) => decide({ rules: collections.get(of)?.access[by] ?? [], request: requestFor(of, by) }),
    member: (of, member, by) => {
      const rules = collections.get(of)?.memberAccess.get(member)?.[by];
      return rules && decide({ rules, request: requestFor(of, by) });
    },
    prospect: () => ({ certain: decide({ rules: [], request }), possible: decide({ rules: [], request }) }),
    auth: request.auth ?? {},
    now: request.now,
  };
}

const unknownOf = (what: string, name: string, known: readonly string[]): string =>
  `${unknownName(what, name, known)} (expected one of ${known.join(', ')})`;

async function callerByEmail(store: Store, email: string | undefined): Promise<Row | null> {
  if (email === undefined) return null;
  const [found] = await findSystem(store, store.db, {
    collection: 'users',
    where: sql`t.email = ${text(normalEmail(email))}`,
  });
  if (found === undefined) throw new ConfigError([`--as: no user has the email \`${email}\``]);
  const own = found.roles as readonly string[];
  return { ...found, roles: effectiveRoles(store.schema, own) };
}

async function recordArgument(store: Store, { name }: Collection, given: string | undefined): Promise<Row | undefined> {
  if (given === undefined) return undefined;
  const id = parseUuid(given);
  const [found] =
    id === undefined ? [] : await findSystem(store, store.db, { collection: name, where: sql`t.id = ${uuid(id)}` });
  if (found === undefined) throw new ConfigError([`\`${name}\` has no record \`${given}\``]);
  return found;
}

function queryArgument(pairs: readonly string[]): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null);
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new ConfigError([`--query: expected k=v, not \`${pair}\``]);
    const [key, value] = [pair.slice(0, at), pair.slice(at + 1)];
    const before = query[key];
    query[key] = before === undefined ? value : [before, value].flat();
  }
  return query;
}

function dataArgument(args: Arguments, action: Action): Data | undefined {
  const given = args.get('set');
  if (given === undefined) return undefined;
  const data = jsonOrNothing(given);
  if (!isObject(data))
    throw new ConfigError([`--set: expected a JSON object such as '{"status":"draft"}', found \`${given}\``]);
  const isCreate = action === 'create';
  if (!isCreate && action !== 'update') throw new ConfigError([`--set is for create and update, not for ${action}`]);
  if (isCreate && args.has('record') && args.get('record') !== '')
    throw new ConfigError(['--set: a create has no stored record; leave out --record']);
  if (!isCreate && !args.has('record')) throw new ConfigError(['--set: an update needs --record ID, which it changes']);
  if (Object.hasOwn(data, 'roles') && args.positionals[0] === 'users')
    throw new ConfigError(['--set: `roles` does not follow the rules of an action; leave it out']);
  return data;
}

function jsonOrNothing(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
