/** A random migration on a database, and the assertions about it. */
import assert from 'node:assert/strict';
import { readTextArray } from '../../../src/database/cells.ts';
import type { Database } from '../../../src/database/contract.ts';
import { applyMigration } from '../../../src/migrations/apply-migration.ts';
import { type MigrateOptions, MigrationRefused, planMigration } from '../../../src/migrations/migration.ts';
import { hasAllOf } from '../../../src/migrations/readiness.ts';
import { fold, foldedColumn } from '../../../src/policy/fold.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { Random } from '../random.ts';
import { type ChangedModel, changed, type FieldType, randomSchema, type SchemaModel, textOfSchema } from './model.ts';
import { type Content, contentOf, empty, insertRows, randomRows } from './rows.ts';

/** As `serve`, as `migrate apply`, and as that with --allow-destructive. */
const MODES = ['serve', 'apply', 'force'] as const;
type Mode = (typeof MODES)[number];

const OPTIONS: Readonly<Record<Mode, MigrateOptions>> = {
  serve: { keepsExtra: true, mayRewrite: false },
  apply: {},
  force: { allowDestructive: true },
};

export interface Outcome {
  /** `failed`: a value did not fit the new type of its column. */
  readonly verdict: 'applied' | 'refused' | 'failed';
  readonly content: Content;
}

export interface Counts {
  applied: number;
  refused: number;
  failed: number;
  interrupted: number;
}

export class MigrationCase {
  readonly before: SchemaModel;
  readonly change: ChangedModel;
  readonly mode: Mode;
  readonly #seed: number;
  readonly #options: MigrateOptions;

  constructor(seed: number) {
    const random = new Random(seed);
    this.#seed = seed;
    this.before = randomSchema(random);
    this.change = changed(random, this.before);
    this.mode = random.pick(MODES);
    this.#options = { ...OPTIONS[this.mode], ...(random.chance(0.7) && { largeFrom: 0 }) };
  }

  describe(): string {
    const { schema } = this.change;
    return `seed ${this.#seed}, ${this.mode}\nbefore ${JSON.stringify(this.before)}\nafter  ${JSON.stringify(schema)}`;
  }

  async run(db: Database, counts: Counts): Promise<Outcome> {
    // The same on both databases, but for where the second interrupts.
    const random = new Random(this.#seed + 1);
    await empty(db);
    await applyMigration(db, schemaOf(this.before));
    await insertRows(db, randomRows(random, this.before));
    const before = await contentOf(db);
    const after = schemaOf(this.change.schema);
    const planned = await planMigration(db, after, this.#options);
    const verdict = await this.#migrate(db, after, { stop: random.below(2 * planned.statements.length + 1), counts });
    counts[verdict]++;
    const content = await contentOf(db);
    if (verdict === 'applied') {
      const again = await planMigration(db, after, this.#options);
      assert.deepEqual(again.statements, [], 'nothing is left to do');
      assert(await hasAllOf(db, after), 'the database is ready');
      this.#compare(before, content);
    } else {
      assert.deepEqual(content, before, 'what is refused changes nothing');
      assert(!this.change.isAdditive || verdict !== 'refused' || this.#isRewrite(planned), 'it is not refused');
    }
    const isRefused = planned.destructive.some(({ kind }) => kind !== 'rewrites' || this.mode === 'serve');
    if (this.mode !== 'force') assert.equal(verdict === 'refused', isRefused, 'the plan knows');
    return { verdict, content };
  }

  #isRewrite({ destructive }: { readonly destructive: readonly { readonly kind: string }[] }): boolean {
    return destructive.every(({ kind }) => kind === 'rewrites');
  }

  /** Interrupted at most once, before a statement. */
  async #migrate(db: Database, after: Schema, { stop, counts }: { readonly stop: number; readonly counts: Counts }) {
    let seen = 0;
    const onStatement = (): void => {
      if (seen++ === stop) throw new Interrupted();
    };
    const attempt = (options: MigrateOptions): Promise<Outcome['verdict'] | 'interrupted'> =>
      applyMigration(db, after, options).then(
        () => 'applied' as const,
        (error: unknown) => {
          if (error instanceof Interrupted) return 'interrupted';
          if (error instanceof MigrationRefused) return 'refused';
          // A conversion of values that do not fit, or are not unique any more.
          if (this.mode === 'force' && /22P02|22003|22007|22008|23505/.test(String(codeOf(error)))) return 'failed';
          throw error;
        },
      );
    const first = await attempt({ ...this.#options, onStatement });
    if (first !== 'interrupted') return first;
    counts.interrupted++;
    const second = await attempt(this.#options);
    assert(second !== 'interrupted');
    return second;
  }

  /** No value is lost or changed unasked. */
  #compare(before: Content, after: Content): void {
    for (const [name, { fields, relations }] of Object.entries(this.before)) {
      const now = this.change.collections.get(name);
      const rows = after.get(now ?? name);
      if (now === undefined) {
        this.#compareGone(before.get(name), rows, `the table ${name}`);
        if (rows === undefined) continue;
      }
      const columns = Object.keys(fields).map((field) => [field, field] as const);
      const references = Object.entries(relations).flatMap(([relation, { kind }]) =>
        kind === 'belongs_to' ? [[relation, `${relation}_id`] as const] : [],
      );
      for (const [member, column] of [...columns, ...references]) {
        this.#compareColumn(before.get(name)!, rows!, { collection: name, now, member, column });
      }
      for (const [relation, { kind }] of Object.entries(relations)) {
        if (kind !== 'many_to_many') continue;
        const link = this.change.members.get(`${name}.${relation}`);
        const [was, is] = [`${name}__${relation}`, `${now}__${link}`];
        if (now === undefined || link === undefined)
          this.#compareGone(before.get(was), after.get(was), `the links ${was}`);
        else assert.deepEqual(after.get(is), before.get(was), `the links ${was} are those of ${is}`);
      }
    }
  }

  /** Only `force` drops. */
  #compareGone(before: unknown, after: unknown, what: string): void {
    if (this.mode === 'force') assert.equal(after, undefined, `${what} is dropped`);
    else assert.deepEqual(after, before, `${what} is kept`);
  }

  #compareColumn(
    before: Content extends ReadonlyMap<string, infer Rows> ? Rows : never,
    rows: typeof before,
    at: ColumnAt,
  ) {
    const { collection, now, member, column } = at;
    assert.equal(rows.length, before.length, `all rows of ${collection} are there`);
    const named = now === undefined ? undefined : this.change.members.get(`${collection}.${member}`);
    const suffix = column.slice(member.length);
    const isGone = named === undefined;
    const current = `${named ?? member}${suffix}`;
    const field = named === undefined ? undefined : this.change.schema[now!]!.fields[named];
    const former = this.before[collection]!.fields[member];
    for (const [i, row] of rows.entries()) {
      const was = before[i]!.get(column) ?? null;
      const is = row.get(current);
      const what = `${collection}.${member} of row ${i}: ${was} → ${is}`;
      if (isGone && this.mode === 'force' && now !== undefined) assert.equal(is, undefined, what);
      else if (was === null && field?.required === true) assert.notEqual(is, null, what);
      else if (field === undefined || field.type === former?.type) assert.equal(is, was, what);
      else if (isWhole(former?.type) && isWhole(field.type)) assert.equal(is, was, what);
      else if (isWhole(former?.type) && field.type === 'float') assert.equal(Number(is), Number(was), what);
      else if (former !== undefined && field.type === 'string' && isPrinted(former.type))
        assert.equal(is, printed(former.type, was), what);
      else if (former?.type === 'string' && isPrinted(field.type) && printed(field.type, is ?? null) === was) continue;
      else assert.equal(this.mode, 'force', `only then is it converted: ${what}`);
      if (field?.search === true) {
        const copy = row.get(foldedColumn(current));
        assert.equal(copy, is === null || is === undefined ? null : fold(is), `the copy of ${what}`);
      }
    }
  }
}

/** Both types have one type of column. */
const isWhole = (type: string | undefined): boolean => type === 'int' || type === 'bigint';
/** The text of a value in answers, from that of its cell, where a column of strings holds no less. */
const PRINTED: Readonly<Partial<Record<FieldType, (cell: string) => string>>> = {
  date: String,
  time: String,
  bigint: String,
  uuid: String,
  decimal: String,
  json: String,
  datetime: (cell) => `${cell.slice(0, 10)}T${cell.slice(11).replace('+00', '').padEnd(9, '.').padEnd(15, '0')}Z`,
  strings: (cell) => JSON.stringify(readTextArray(cell)),
  ints: (cell) => `[${readTextArray(cell).join(',')}]`,
  point: (cell) => cell.replace(/^\((.*),(.*)\)$/, '{"lat":$2,"lng":$1}'),
};
const isPrinted = (type: FieldType): boolean => PRINTED[type] !== undefined;
const printed = (type: FieldType, cell: string | null): string | null => (cell === null ? null : PRINTED[type]!(cell));

interface ColumnAt {
  readonly collection: string;
  readonly now: string | undefined;
  readonly member: string;
  readonly column: string;
}

class Interrupted extends Error {}

function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  return 'code' in error ? error.code : codeOf(error.cause);
}

function schemaOf(model: SchemaModel): Schema {
  const { schema, issues } = parseSchema(textOfSchema(model));
  const errors = issues.filter(({ severity }) => severity === 'error');
  assert(schema !== undefined, errors.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return schema;
}
