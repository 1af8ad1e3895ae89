/** Tables of another program beside those of a random schema: parts, whose key has several columns, and pieces, which refer to them. */
import type { Database } from '../../../src/database/contract.ts';
import type { Collection } from '../../../src/schema/model/model.ts';
import { INTS, TEXTS } from '../policies/values.ts';
import type { Random } from '../random.ts';
import type { Doors } from './store-modules.ts';

export const OWNED = ['parts', 'pieces'];
/** The share of schemas that have them. */
const SHARE = 0.4;
const LINKED_SHARE = 0.6;
/** The most parts; there are up to twice as many pieces. */
const MOST = 12;

const OWNED_FILE = {
  parts: {
    managed: false,
    timestamps: 'none',
    id: ['shelf', 'no'],
    fields: { shelf: { type: 'string' }, no: { type: 'int' }, title: { type: 'string' }, open: { type: 'bool' } },
    relations: { pieces: { kind: 'has_many', collection: 'pieces', via: 'part' } },
    access: { read: true },
  },
  pieces: {
    managed: false,
    timestamps: 'none',
    id: { type: 'int', made_by: 'caller' },
    fields: { shelf: { type: 'string' }, no: { type: 'int' }, size: { type: 'int' } },
    relations: { part: { kind: 'belongs_to', collection: 'parts', fields: ['shelf', 'no'] } },
    access: { read: true },
  },
};
const TABLES = [
  'CREATE TABLE parts (shelf text COLLATE "C", no int8, title text COLLATE "C", open bool, PRIMARY KEY (shelf, no))',
  `CREATE TABLE pieces (id int8 PRIMARY KEY, shelf text COLLATE "C", no int8, size int8,
     FOREIGN KEY (shelf, no) REFERENCES parts)`,
];

interface File {
  readonly collections: Record<string, { readonly relations?: Record<string, object> }>;
}

/** JSON is YAML. Some collections have links to the parts. */
export function withOwned(text: string, names: readonly string[], random: Random): string {
  if (!random.chance(SHARE)) return text;
  const file = JSON.parse(text) as File;
  for (const name of names)
    if (random.chance(LINKED_SHARE))
      file.collections[name]!.relations!.linked_parts = { kind: 'many_to_many', collection: 'parts' };
  return JSON.stringify({ ...file, collections: { ...file.collections, ...OWNED_FILE } });
}

interface Owned {
  readonly doors: Doors;
  readonly schema: { readonly collections: ReadonlyMap<string, Collection> };
  readonly db: Pick<Database, 'run'>;
}

/** Makes the tables with their rows, before the migration. */
export async function makeOwned({ doors, schema, db }: Owned, random: Random): Promise<void> {
  if (!schema.collections.has('parts')) return;
  const { sql, raw, param, text } = doors.compiler.sql;
  for (const table of TABLES) await db.run(raw(table));
  const keys = new Map<string, readonly [string, number]>();
  for (let i = 3 + random.below(MOST); i > 0; i--) {
    const key = [random.pick(TEXTS), random.pick(INTS)] as const;
    keys.set(key.join(), key);
  }
  for (const [shelf, no] of keys.values()) {
    const [title, open] = [random.pick([null, ...TEXTS]), random.pick([null, true, false])];
    await db.run(
      sql`INSERT INTO parts VALUES (${text(shelf)}, ${param('int8', no)}, ${text(title)}, ${param('bool', open)})`,
    );
  }
  const all = [...keys.values()];
  for (let id = random.below(2 * MOST); id > 0; id--) {
    const [shelf, no] = random.chance(0.15) ? [random.pick([null, ...TEXTS]), null] : random.pick(all);
    const size = random.pick([null, ...INTS]);
    await db.run(
      sql`INSERT INTO pieces VALUES (${param('int8', id)}, ${text(shelf)}, ${param('int8', no)}, ${param('int8', size)})`,
    );
  }
}
