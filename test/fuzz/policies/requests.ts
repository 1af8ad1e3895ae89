/** Random requests: present, missing, repeated and unreadable values. */
import type { PolicyRequest, Row } from '../../../src/policy/types.ts';
import type { Random } from '../random.ts';
import { KEY_OF, QUERY_KEYS, type Setting } from './policies.ts';
import {
  BYTES,
  bodyOf,
  DATETIME_SPELLINGS,
  DATETIMES,
  DECIMAL_INPUTS,
  NOW,
  QUERY_TEXTS,
  type scalarOf,
  TEXTS,
  THEMES,
  TIME_SPELLINGS,
  UUID_SPELLINGS,
} from './values.ts';
import { ROLES, type World } from './world.ts';

/**
 * The requests that one policy is asked with, in a random order: what an earlier one left in the
 * policy must not decide a later one. The first request holds every value, the second a part of
 * them, the third none, and the others are random.
 */
export function randomRequests(world: World, setting: Setting, random: Random): readonly PolicyRequest[] {
  const whole = randomRequest(world, setting, random);
  const others = Array.from({ length: OTHERS }, () => randomRequest(world, setting, random));
  return random.shuffled([whole, partOf(whole, random), absent(whole), ...others]);
}

const OTHERS = 3;

/** Some of it is gone or cannot be read, and of lists some elements. */
function partOf({ auth, kind, facts, query, data, now }: PolicyRequest, random: Random): PolicyRequest {
  const some = (given: Readonly<Record<string, unknown>>): Record<string, unknown> => {
    const kept = Object.keys(given).filter(() => random.chance(0.7));
    return fromEntries(
      kept.map((key) => [key, Array.isArray(given[key]) ? partOfList(given[key], random) : given[key]]),
    );
  };
  return {
    auth: auth && some(auth),
    kind,
    facts: some(facts ?? {}) as PolicyRequest['facts'],
    query: some(query) as PolicyRequest['query'],
    now,
    ...(data && { data: some(data) }),
  };
}

function partOfList(values: readonly unknown[], random: Random): readonly unknown[] {
  const roll = random.next();
  if (roll < 0.5) return [...values, UNREADABLE];
  return values.map((value) => (random.chance(0.3) ? UNREADABLE : value));
}

/** Values that no type accepts. */
const UNREADABLE = '\0';

const absent = ({ auth, kind, now, data }: PolicyRequest): PolicyRequest => ({
  auth: auth && { id: auth.id },
  kind,
  query: {},
  now,
  ...(data && { data: {} }),
});

/** Assigning `__proto__` would set the prototype. */
const fromEntries = (entries: readonly (readonly [string, unknown])[]): Record<string, unknown> =>
  Object.fromEntries(entries);

export function randomRequest({ catalog, data }: World, { collection }: Setting, random: Random): PolicyRequest {
  const ids = [...data.rows.values()].flat().map((row) => row.id as string);
  const query: Record<string, string | readonly string[]> = {};
  for (const key of QUERY_KEYS) {
    if (key === 'missing' || random.chance(0.15)) continue;
    const value = random.chance(0.25)
      ? Array.from({ length: random.pick([0, 2, 3, 4]) }, () => queryText(key, { ids, random }))
      : queryText(key, { ids, random });
    // Assigning `__proto__` would set the prototype.
    Object.defineProperty(query, key, { value, enumerable: true });
  }
  const now = random.chance(0.7) ? NOW : random.pick(DATETIMES);
  const { auth, kind } = random.chance(0.07) ? { auth: null } : caller(data.rows.get('users')!, random);
  return {
    auth,
    kind,
    facts: factsOf(random),
    query,
    now,
    data: randomBody(catalog.collections.get(collection)!, { ids, random }),
  };
}

/** Addresses at the edges of `NETWORKS`, in several spellings, and texts that are none. */
const ADDRESSES = [
  '10.0.0.0',
  '10.255.255.255',
  '11.0.0.0',
  '::ffff:10.1.2.3',
  '192.0.2.7',
  '2001:db8::1',
  '2001:DB9::',
  '10.0.0.256',
  '',
];

const factsOf = (random: Random): PolicyRequest['facts'] => ({
  ip: random.pick(ADDRESSES),
  method: random.pick(['GET', 'PATCH', undefined]),
  origin: random.pick(QUERY_TEXTS),
});

function queryText(key: string, { ids, random }: { ids: readonly string[]; random: Random }): string {
  const theme = Object.hasOwn(THEMES, key) ? THEMES[key] : undefined;
  if (theme && random.chance(0.7)) return random.pick(theme);
  if (random.chance(key === KEY_OF.id ? 0.25 : 0.75)) return random.pick(QUERY_TEXTS);
  const id = String(random.pick(ids));
  const spellings = [id, id, id.toUpperCase(), `{${id}}`, id.replaceAll('-', ''), ` ${id}`, `urn:uuid:${id}`];
  return random.pick(spellings);
}

type RequestCaller = Pick<PolicyRequest, 'auth' | 'kind'>;

/** The caller of a request; another one where it has none. */
export const callerOr = ({ auth, kind }: PolicyRequest, other: Row): RequestCaller =>
  auth === null ? { auth: other, kind: 'user' } : { auth, kind };

function caller(users: readonly Row[], random: Random): RequestCaller {
  const { id, ...rest } = random.pick(users);
  const roles = ROLES.filter(() => random.chance(0.4));
  const kind = random.chance(0.2) ? random.pick(['key', 'guest'] as const) : 'user';
  if (kind === 'guest')
    return { auth: { roles, second_factor: false, ...(roles.length > 0 && { guest: TEXTS[roles.length] }) }, kind };
  // A key has the id of a user here: it must not be taken for the user.
  if (kind === 'key') return { auth: { id, roles, second_factor: false }, kind };
  if (random.chance(0.1)) return { auth: { ...rest, roles }, kind };
  const sign = { second_factor: random.chance(0.5), signed_in_at: random.pick(DATETIMES) };
  const session = { ...sign, ...(roles.length > 1 && { former_guest: TEXTS[roles.length] }) };
  return { auth: { id, ...rest, ...(random.chance(0.9) && session), ...(random.chance(0.9) && { roles }) }, kind };
}

function randomBody(
  {
    fields,
    relations,
  }: {
    fields: ReadonlyMap<string, { name: string; type: Parameters<typeof scalarOf>[0] }>;
    relations: ReadonlyMap<string, { name: string; kind: string }>;
  },
  { ids, random }: { ids: readonly string[]; random: Random },
): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const { name, type } of fields.values()) {
    if (random.chance(0.2)) continue;
    body[name] = random.chance(0.8) ? bodyValue(type, random) : random.pick(WRONG);
  }
  for (const { name, kind } of relations.values()) {
    if (kind !== 'belongs_to' || random.chance(0.2)) continue;
    const id = random.pick(ids);
    body[name] = random.chance(0.7) ? id : random.chance(0.5) ? String(id).toUpperCase() : random.pick(WRONG);
  }
  return body;
}

const bodyValue = (type: Parameters<typeof scalarOf>[0], random: Random) =>
  isSpelled(type) ? random.pick(SPELLINGS[type]) : bodyOf(type, random);

const isSpelled = (type: string): type is keyof typeof SPELLINGS => Object.hasOwn(SPELLINGS, type);

const SPELLINGS = {
  datetime: DATETIME_SPELLINGS,
  time: TIME_SPELLINGS,
  uuid: UUID_SPELLINGS,
  bytes: BYTES,
  decimal: DECIMAL_INPUTS,
};

const WRONG: readonly unknown[] = [
  null,
  '',
  '5',
  5,
  1.5,
  true,
  [],
  {},
  ['a'],
  'a\0',
  '\uDFFF',
  2 ** 53,
  Number.NaN,
  '2024-02-30T00:00:00Z',
];
