/** Random requests: present, missing, repeated and unreadable values. */
import type { PolicyRequest, Row } from '../../src/policy/types.ts';
import { KEY_OF, QUERY_KEYS, type Setting } from './policies.ts';
import type { Random } from './random.ts';
import { DATETIME_SPELLINGS, DATETIMES, NOW, QUERY_TEXTS, scalarOf, THEMES } from './values.ts';
import { ROLES, type World } from './world.ts';

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
  const auth = random.chance(0.07) ? null : caller(data.rows.get('users')!, random);
  return { auth, query, now, data: randomBody(catalog.collections.get(collection)!, { ids, random }) };
}

function queryText(key: string, { ids, random }: { ids: readonly string[]; random: Random }): string {
  const theme = Object.hasOwn(THEMES, key) ? THEMES[key] : undefined;
  if (theme && random.chance(0.7)) return random.pick(theme);
  if (random.chance(key === KEY_OF.id ? 0.25 : 0.75)) return random.pick(QUERY_TEXTS);
  const id = random.pick(ids);
  const spellings = [id, id, id.toUpperCase(), `{${id}}`, id.replaceAll('-', ''), ` ${id}`, `urn:uuid:${id}`];
  return random.pick(spellings);
}

function caller(users: readonly Row[], random: Random): Row {
  const { id, ...rest } = random.pick(users);
  const roles = ROLES.filter(() => random.chance(0.4));
  if (random.chance(0.1)) return { ...rest, roles };
  return { id, ...rest, ...(random.chance(0.9) && { roles }) };
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
    body[name] = random.chance(0.7) ? id : random.chance(0.5) ? id.toUpperCase() : random.pick(WRONG);
  }
  return body;
}

const bodyValue = (type: Parameters<typeof scalarOf>[0], random: Random) =>
  type === 'datetime' ? random.pick(DATETIME_SPELLINGS) : scalarOf(type, random);

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
