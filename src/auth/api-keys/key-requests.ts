/** Checks the wishes for a key: every error at its place in the body. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { GUEST } from '../../policy/check/guests.ts';
import { parseNetwork } from '../../policy/request/networks.ts';
import { ACTIONS, type Action } from '../../policy/types.ts';
import { parseDatetime } from '../../policy/values.ts';
import { type ErrorDetail, echo, Problem, pointerPart } from '../../problem.ts';
import { mayAssignSome, unknownRole } from '../../records/write/role-changes.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import { credentialNameError } from '../credential-name.ts';
import type { ApiKey, ApiKeyEdit } from './api-key-rows.ts';
import { addsAdministration, type BoundsInput, EVERY, firstBeyond, type KeyLimit } from './key-bounds.ts';

/** Seconds for which a rotated key still works beside the new one. */
export const MOST_OVERLAP = 604_800;

/** A wish for a key, of the right types. */
export interface KeyRequest {
  readonly name: string;
  readonly roles?: readonly string[] | undefined;
  readonly publishable?: boolean | undefined;
  readonly limit?: Readonly<Record<string, readonly string[]>> | null | undefined;
  readonly addresses?: readonly string[] | null | undefined;
  readonly origins?: readonly string[] | null | undefined;
  readonly expires_at?: string | null | undefined;
}

interface CheckedKey extends BoundsInput {
  readonly name: string;
  readonly roles: readonly string[];
  readonly publishable: boolean;
  readonly expires_at: string | null;
}

/** Throws `validation_failed` with every error. */
export function checkNewKey(schema: Schema, request: KeyRequest): CheckedKey {
  const { name, roles, publishable = false, limit = null, addresses = null, origins = null, expires_at } = request;
  const expires = readEnd(expires_at ?? null);
  throwIfAny([
    ...nameErrors(name),
    ...(publishable ? publishableErrors(schema, roles) : roleErrors(schema, roles ?? [])),
    ...(publishable || origins === null ? [] : [errorAt('/origins', 'only a publishable key has origins')]),
    ...limitErrors(schema, limit),
    ...(addresses ?? []).flatMap(addressError),
    ...(origins ?? []).flatMap(originError),
    ...expires.errors,
  ]);
  const bounds = { limit: limit as KeyLimit | null, addresses, origins };
  return { ...bounds, name, roles: roles ?? [], publishable, expires_at: expires.value };
}

/** An edit takes away, and never gives. Throws `validation_failed` with every error. */
export function checkEdit(
  schema: Schema,
  key: ApiKey,
  { name, limit, expires_at }: Partial<ApiKeyEdit>,
): Partial<ApiKeyEdit> {
  const expires = readEnd(expires_at ?? null);
  throwIfAny([
    ...(name === undefined ? [] : nameErrors(name)),
    ...(limit === undefined
      ? []
      : [...limitErrors(schema, limit), ...widerErrors(limit, key.limit), ...administrationErrors(schema, key, limit)]),
    ...(expires_at === undefined ? [] : [...expires.errors, ...laterErrors(expires.value, key.expires_at)]),
  ]);
  return {
    ...(name !== undefined && { name }),
    ...(limit !== undefined && { limit }),
    ...(expires_at !== undefined && { expires_at: expires.value }),
  };
}

function throwIfAny(errors: readonly ErrorDetail[]): void {
  if (errors.length === 0) return;
  throw new Problem('validation_failed', 'the key cannot be like this', { errors });
}

const errorAt = (pointer: string, detail: string, code = 'invalid_value'): ErrorDetail => ({ pointer, code, detail });

function nameErrors(name: string): readonly ErrorDetail[] {
  const error = credentialNameError(name);
  return error === undefined ? [] : [errorAt('/name', error)];
}

function publishableErrors(schema: Schema, roles: readonly string[] | undefined): readonly ErrorDetail[] {
  const closed = `the schema admits no guests, and a publishable key is a guest's; set \`guests: true\` in the schema`;
  return [
    ...(schema.guests ? [] : [errorAt('/publishable', closed)]),
    ...(roles === undefined ? [] : [errorAt('/roles', `a publishable key has the role \`${GUEST}\` and no other`)]),
  ];
}

function roleErrors(schema: Schema, roles: readonly string[]): readonly ErrorDetail[] {
  if (roles.length === 0) return [errorAt('/roles', 'expected at least one role', 'required')];
  return roles.flatMap((name, i) => {
    if (name === GUEST) return [errorAt(`/roles/${i}`, `\`${GUEST}\` is the role of callers who are not signed in`)];
    return unknownRole(schema, name, `/roles/${i}`);
  });
}

function limitErrors({ collections }: Schema, limit: KeyRequest['limit']): readonly ErrorDetail[] {
  if (limit === null || limit === undefined) return [];
  const entries = Object.entries(limit);
  if (entries.length === 0) return [errorAt('/limit', 'expected at least one collection, or `*`')];
  return entries.flatMap(([name, actions]) => {
    const pointer = `/limit/${pointerPart(name)}`;
    if (name !== EVERY && !collections.has(name)) {
      const detail = `unknown collection \`${echo(name)}\`${hintOf(nearest(name, collections.keys()))}`;
      return [errorAt(pointer, detail, 'unknown_collection')];
    }
    if (actions.length === 0) return [errorAt(pointer, `expected at least one of ${ACTIONS.join(', ')}`)];
    return actions.flatMap((action, i) =>
      isAction(action) ? [] : [errorAt(`${pointer}/${i}`, `expected one of ${ACTIONS.join(', ')}`)],
    );
  });
}

const isAction = (value: string): value is Action => ACTIONS.some((action) => action === value);

function widerErrors(limit: KeyLimit | null, before: KeyLimit | null): readonly ErrorDetail[] {
  if (before === null) return [];
  const beyond = limit === null ? undefined : firstBeyond(limit, before);
  if (limit !== null && beyond === undefined) return [];
  const pointer = beyond === undefined ? '/limit' : `/limit/${pointerPart(beyond)}`;
  return [errorAt(pointer, 'the limit of a key can only become narrower; make a new key')];
}

/** The roles of a key may be ones that its maker has lost. */
function administrationErrors(schema: Schema, { roles, limit: before }: ApiKey, limit: KeyLimit | null) {
  const isAdministrator = mayAssignSome(schema, { roles: effectiveRoles(schema, roles) });
  if (!isAdministrator || !addsAdministration(limit, before)) return [];
  return [errorAt('/limit/users', 'the key would administer accounts, which it could not before; make a new key')];
}

const addressError = (text: string, i: number): readonly ErrorDetail[] =>
  parseNetwork(text) === undefined
    ? [errorAt(`/addresses/${i}`, 'expected an address or a range such as `203.0.113.0/24`')]
    : [];

const originError = (text: string, i: number): readonly ErrorDetail[] =>
  URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text
    ? []
    : [errorAt(`/origins/${i}`, 'expected an origin such as `https://app.example`')];

function readEnd(text: string | null): { readonly value: string | null; readonly errors: readonly ErrorDetail[] } {
  if (text === null) return { value: null, errors: [] };
  const value = parseDatetime(text);
  if (value === undefined) return { value: null, errors: [errorAt('/expires_at', 'expected a datetime (RFC 3339)')] };
  const isPast = Date.parse(value) <= Date.now();
  return { value, errors: isPast ? [errorAt('/expires_at', 'expected a time in the future')] : [] };
}

/** Texts of canonical datetimes are in the order of their times. */
const laterErrors = (end: string | null, before: string | null): readonly ErrorDetail[] =>
  before === null || (end !== null && end <= before)
    ? []
    : [errorAt('/expires_at', 'the end of a key can only become earlier; make a new key')];
