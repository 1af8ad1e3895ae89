/** A schema with a feed for each of many policies, and the random writes of its tables. */
import type { Random } from '../random.ts';

/** Each is the list rule of a collection. */
export const FEED_POLICIES: readonly string[] = [
  'true',
  '@record.owner = @request.auth.id',
  '@record.owner = @request.auth.id or @record.team = @request.auth.team',
  'any(@record.team.memberships as m, m.kind = "full") or any(@record.team.memberships as o, o.user = @request.auth.id)',
  '@record.flag = true or @record.owner = @request.auth.id',
  'not (@record.n > 2)',
  'any(@record.team.memberships as m, m.user = @request.auth.id)',
  '@record.team.open = true',
  '@record.team = @request.auth.team and @record.n in [1, 2, 3]',
  'any(@record.tags as t, t.name = "a")',
  'none(@record.team.memberships as m, m.user = @request.auth.id and m.kind = "banned")',
  '@record.parent.owner = @request.auth.id',
  'count(@record.tags) > 1 or @record.owner = @request.auth.id',
  'any(ancestors(@record.parent by parent) as a, a.flag = true)',
  '@record.cover.shown = true',
  'in_open(@request.auth.team) and @record.n < 4',
  '@record.owner.team = @request.auth.team or @record.label starts with "b"',
  'is_in(@record.team, "full") or is_in(@record.parent.team, "banned")',
];
const SECRET_RULES = ['@record.owner = @request.auth.id', '@record.flag = true', '@record.team.open = true'];
const COVER_RULES = ['true', '@record.shown = true'];

/** The first of the collections with a list rule. */
export const COLLECTION = 'items0';

export const feedSchema = (policies: readonly string[]): string => `
conditions:
  'in_open(team: teams)': 'team.open = true'
  'is_in(team: teams, kind: string)': 'any(team.memberships as m, m.user = @request.auth.id and m.kind = kind)'
collections:
  users:
    changes: true
    relations:
      team: { kind: belongs_to, collection: teams }
      memberships: { kind: has_many, collection: memberships, via: user }
  teams:
    changes: true
    fields: { open: { type: bool, access: { read: 'any(@record.memberships as m, m.user = @request.auth.id)' } } }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
    access: { read: true }
  memberships:
    changes: true
    fields: { kind: string }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true }
    access: { read: '@record.kind = "full" or @record.team.open = true' }
  tags: { changes: true, fields: { name: string }, access: { read: '@record.name != "c"' } }
${policies.map(collectionsOf).join('')}`;

/** Ids of three types, two of which look alike. */
const KEYS = {
  uuid: '{ type: uuid }',
  string: '{ type: string, made_by: database }',
  int: '{ type: int, made_by: database }',
};
type KeyType = keyof typeof KEYS;
/** Random rules, which come after each fixed one, name records by a UUID. */
const FIXED_KEYS: readonly KeyType[] = ['uuid', 'int', 'string'];
const RANDOM_KEYS: readonly KeyType[] = ['string', 'uuid'];
const keyTypeOf = (i: number): KeyType => {
  const keys = i % 2 === 0 ? FIXED_KEYS : RANDOM_KEYS;
  return keys[Math.floor(i / 2) % keys.length]!;
};

function collectionsOf(policy: string, i: number): string {
  return `
  items${i}:
    changes: true
    id: ${KEYS[keyTypeOf(i)]}
    fields:
      n: int
      label: string
      flag: bool
      secret: { type: string, access: { read: '${SECRET_RULES[i % SECRET_RULES.length]}' } }
    relations:
      owner: { kind: belongs_to, collection: users }
      team: { kind: belongs_to, collection: teams, on_delete: cascade }
      parent: { kind: belongs_to, collection: items${i} }
      tags: { kind: many_to_many, collection: tags }
      cover: { kind: has_one, collection: covers${i}, via: item }
    access: { list: ${JSON.stringify(policy)}, read: ${JSON.stringify(policy)}, create: true, update: true, delete: true }
  covers${i}:
    fields: { shown: bool }
    relations: { item: { kind: belongs_to, collection: items${i}, on_delete: cascade } }
    access: { view: '${COVER_RULES[i % COVER_RULES.length]}' }
`;
}

export interface Pools {
  readonly users: readonly string[];
  readonly teams: string[];
  readonly tags: readonly string[];
  /** The items of one collection. */
  readonly items: string[];
  /** The kinds of writes to the other records that its rule and the filters read. */
  readonly related: readonly number[];
}

/** Kinds of `relatedWrite` by the words of a rule or filter that reads such records. Memberships show who sees `open`. */
const WRITES_BEHIND: readonly (readonly [RegExp, readonly number[]])[] = [
  [/memberships|is_in|^team\.open/m, [14, 15, 16, 20, 21]],
  [/auth\.team|\.open|in_open/, [16]],
  [/tags/, [17, 18]],
  [/cover/, [18, 19]],
];

/** @param texts of the rule and the filters, one a line */
export const writesBehind = (texts: string): readonly number[] =>
  WRITES_BEHIND.flatMap(([words, kinds]) => (words.test(texts) ? kinds : []));

/** Items that random rules name. An id comes again after its record was deleted. */
export const NAMED_ITEMS = ['17e00000-0000-4000-8000-000000000001', '17e00000-0000-4000-8000-000000000002'];
const NAMED_NUMBERS = ['-7', '4294967297'];

/** A write by the doors of the service; null deletes. */
export interface DoorWrite {
  readonly id: string | undefined;
  readonly data: Readonly<Record<string, unknown>> | null;
}

export function randomDoorWrite(random: Random, { users, teams, items }: Pools): DoorWrite {
  const data = {
    n: random.below(6),
    label: random.pick(['a', 'b', 'bc']),
    flag: random.pick([true, false, null]),
    secret: random.pick(['s1', 's2']),
    owner: maybe(random, users) ?? null,
    team: maybe(random, teams) ?? null,
  };
  if (items.length < 3 || random.chance(0.3)) return { id: undefined, data };
  const id = random.pick(items);
  if (random.chance(0.2)) {
    items.splice(items.indexOf(id), 1);
    return { id, data: null };
  }
  return { id, data: { n: data.n, flag: data.flag } };
}

/** The numbers from 14 on are kinds of related writes; those beyond this one are drawn where a rule reads memberships. */
const LAST_RELATED = 19;

/** A statement that some program sends. */
export function randomWrite(random: Random, i: number, pools: Pools): string {
  const choice =
    pools.related.length > 0 && random.chance(0.2) ? random.pick(pools.related) : random.below(LAST_RELATED + 1);
  if (choice < 5 || pools.items.length < 3) return insertItem(random, i, pools);
  if (choice < 12) return updateItem(random, i, pools);
  if (choice < 14) return deleteItem(random, i, pools);
  return relatedWrite(random, i, pools, choice);
}

const text = (value: string | undefined): string => (value === undefined ? 'NULL' : `'${value}'`);
const maybe = <T>(random: Random, all: readonly T[]): T | undefined =>
  all.length === 0 || random.chance(0.2) ? undefined : random.pick(all);

function randomValue(random: Random, column: string, { users, teams, items }: Pools): string {
  switch (column) {
    case 'n':
      return String(random.below(6));
    case 'label':
      return text(random.pick(['a', 'b', 'bc']));
    case 'flag':
      return random.pick(['true', 'false', 'NULL']);
    case 'secret':
      return text(random.pick(['s1', 's2']));
    case 'owner_id':
      return text(maybe(random, users));
    case 'team_id':
      return text(maybe(random, teams));
    default:
      return text(maybe(random, items));
  }
}
const COLUMNS = ['n', 'label', 'flag', 'secret', 'owner_id', 'team_id', 'parent_id'];

/** Statements of one commit that change each record several times: the states between are those of no list. */
export function repeatedWrites(random: Random, i: number, pools: Pools): readonly string[] {
  const column = random.pick(COLUMNS);
  return Array.from({ length: 3 }, () => `UPDATE items${i} SET ${column} = ${randomValue(random, column, pools)}`);
}

/**
 * Statements of two commits of a record: in the first state most rules hide its field, and in the second they show it. The
 * hidden value is no other's.
 */
export function hiddenThenShown(random: Random, i: number, { users, items }: Pools): readonly string[] {
  const where = `WHERE id = '${random.pick(items)}'`;
  return [
    `UPDATE items${i} SET secret = '${random.uuid()}', flag = false, owner_id = NULL ${where}`,
    `UPDATE items${i} SET secret = 's1', flag = true, owner_id = '${random.pick(users)}' ${where}`,
  ];
}

function insertItem(random: Random, i: number, pools: Pools): string {
  const isNamed = pools.items.length >= 3 && random.chance(0.4);
  const isInt = keyTypeOf(i) === 'int';
  const named = (isInt ? NAMED_NUMBERS : NAMED_ITEMS).find((each) => isNamed && !pools.items.includes(each));
  const id = named ?? (isInt ? String(10_000 + random.below(2 ** 30)) : random.uuid());
  const values = COLUMNS.map((column) => randomValue(random, column, pools));
  pools.items.push(id);
  return `INSERT INTO items${i} (id, ${COLUMNS.join(', ')}) VALUES ('${id}', ${values.join(', ')})`;
}

function updateItem(random: Random, i: number, pools: Pools): string {
  const columns = random.shuffled(COLUMNS).slice(0, 1 + random.below(2));
  const set = columns.map((column) => `${column} = ${randomValue(random, column, pools)}`);
  const where = random.chance(0.15) ? 'TRUE' : `id = '${random.pick(pools.items)}'`;
  return `UPDATE items${i} SET ${set.join(', ')} WHERE ${where}`;
}

function deleteItem(random: Random, i: number, { items }: Pools): string {
  const [id] = items.splice(random.below(items.length), 1);
  return `DELETE FROM items${i} WHERE id = '${id}'`;
}

function relatedWrite(random: Random, i: number, pools: Pools, choice: number): string {
  const { users, teams, tags, items } = pools;
  switch (choice) {
    case 14:
      return `INSERT INTO memberships (id, team_id, user_id, kind)
        VALUES ('${random.uuid()}', '${random.pick(teams)}', '${random.pick(users)}', '${random.pick(['banned', 'full'])}')`;
    case 15:
      return `DELETE FROM memberships WHERE id = (SELECT id FROM memberships ORDER BY id LIMIT 1 OFFSET ${random.below(3)})`;
    case 16:
      if (random.chance(0.3)) return ruleWrite(random, pools);
      return random.chance(0.8)
        ? `UPDATE teams SET open = ${random.pick(['true', 'false'])} WHERE id = '${random.pick(teams)}'`
        : `UPDATE users SET team_id = '${random.pick(teams)}' WHERE id = '${random.pick(users)}'`;
    case 17:
      return `INSERT INTO items${i}__tags (record_id, member_id)
        SELECT id, '${random.pick(tags)}' FROM items${i} WHERE id = '${random.pick(items)}' ON CONFLICT DO NOTHING`;
    case 20:
      return `INSERT INTO memberships (id, team_id, user_id, kind)
        SELECT gen_random_uuid(), id, '${random.pick(users)}', '${random.pick(['banned', 'full'])}' FROM teams`;
    case 21:
      return `DELETE FROM memberships WHERE user_id = '${random.pick(users)}'`;
    case 18:
      if (random.chance(0.15)) return `TRUNCATE ${random.pick([`covers${i}`, `items${i}__tags`])}`;
      return random.pick([
        `DELETE FROM items${i}__tags WHERE member_id = '${random.pick(tags)}'`,
        `UPDATE covers${i} SET item_id = NULL WHERE shown`,
        coverMove(random, i, pools),
      ]);
    default:
      if (random.chance(0.5)) return coverMove(random, i, pools);
      // A partner whose readability alone changes makes no event.
      return `INSERT INTO covers${i} (id, shown, item_id)
        VALUES ('${random.uuid()}', ${random.pick(['true', 'false'])}, '${random.pick(items)}')
        ON CONFLICT DO NOTHING`;
  }
}

/** A partner that moves changes two records at one place of the log. */
function coverMove(random: Random, i: number, { items }: Pools): string {
  const target = random.pick(items);
  return `UPDATE covers${i} SET item_id = '${target}'
    WHERE id = (SELECT id FROM covers${i} WHERE item_id IS NOT NULL ORDER BY id LIMIT 1 OFFSET ${random.below(2)})
      AND NOT EXISTS (SELECT 1 FROM covers${i} WHERE item_id = '${target}')`;
}

/** Changes values of other collections that random rules read. */
function ruleWrite(random: Random, { users, teams, tags }: Pools): string {
  switch (random.below(4)) {
    case 0:
      return `UPDATE tags SET name = ${text(random.pick(['a', 'b']))} WHERE id = '${random.pick(tags)}'`;
    case 1:
      return `UPDATE memberships SET kind = ${text(random.pick(['banned', 'full']))} WHERE user_id = '${random.pick(users)}'`;
    case 2:
      return `UPDATE memberships SET team_id = '${random.pick(teams)}' WHERE user_id = '${random.pick(users)}'`;
    default:
      return `UPDATE users SET email_verified = NOT email_verified WHERE id = '${random.pick(users)}'`;
  }
}
