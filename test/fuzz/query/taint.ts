/** Two databases that differ only in what a caller may not see give the same answers, byte for byte, cursors apart. */
import type { PolicyRequest, Row } from '../../../src/policy/types.ts';
import type { Collection } from '../../../src/schema/model.ts';
import type { AccessContext } from '../../../src/store/records/access-context.ts';
import { type Data, type Id, relatedOf } from '../../oracle/database.ts';
import { hide } from '../../oracle/hide.ts';
import { interpret } from '../../oracle/interpret.ts';
import type { Stocked } from '../doors-world.ts';
import type { Random } from '../random.ts';
import { scalarOf } from '../values.ts';
import { meantBy, type RuleSet } from './read-rules.ts';
import type { QueryDoors } from './store-modules.ts';

/** A body of a query or of an aggregate. */
export interface Question {
  readonly kind: 'query' | 'aggregate';
  readonly body: Row;
}
interface TaintedCaller {
  readonly stocked: Stocked;
  readonly doors: QueryDoors;
  readonly collection: Collection;
  readonly rules: RuleSet;
  readonly request: PolicyRequest;
  readonly access: AccessContext;
}
interface Change {
  readonly collection: Collection;
  readonly id: Id;
  readonly field: string;
  readonly value: string | number | boolean;
}
interface Tainted {
  /** What the database holds now. */
  readonly data: Data;
  readonly changes: number;
  /** In words. */
  readonly found?: string;
}

const TRIES = 40;

export class TaintCheck {
  readonly #caller: TaintedCaller;
  readonly #random: Random;

  constructor(caller: TaintedCaller, random: Random) {
    this.#caller = caller;
    this.#random = random;
  }

  async run(before: Data, questions: readonly Question[]): Promise<Tainted> {
    const [data, changes] = this.#changed(before);
    if (changes.length === 0) return { data, changes: 0 };
    const ids = before.rows.get(this.#caller.collection.name)!.map(({ id }) => id as Id);
    const ask = async () => [
      ...(await Promise.all(questions.map((question) => this.#answer(question)))),
      ...(await Promise.all(ids.map((id) => this.#read(id)))),
      await this.#list(),
    ];
    const first = await ask();
    for (const change of changes) await this.#write(change);
    const second = await ask();
    const at = second.findIndex((text, i) => text !== first[i]);
    if (at < 0) return { data, changes: changes.length };
    const changed = changes.map(({ collection, id, field, value }) => [collection.name, id, field, value]);
    const lines = [
      'DISAGREEMENT: an answer depends on what is hidden',
      `  question    ${JSON.stringify(questions[at] ?? ids[at - questions.length] ?? 'list')}`,
      `  changed     ${JSON.stringify(changed)}`,
      `  before      ${first[at]}`,
      `  after       ${second[at]}`,
    ];
    return { data, changes: changes.length, found: lines.join('\n') };
  }

  // -------------------------------------------------------------- what is hidden

  /** Other values of fields, each of which leaves what the caller may see as it was. */
  #changed(before: Data): readonly [Data, readonly Change[]] {
    const changes: Change[] = [];
    const view = this.#viewOf(before);
    let data = before;
    for (let i = 0; i < TRIES; i++) {
      const change = this.#change(data);
      if (change === undefined) continue;
      const { collection, id, field, value } = change;
      const rows = data.rows.get(collection.name)!.map((row) => (row.id === id ? { ...row, [field]: value } : row));
      const other = { ...data, rows: new Map(data.rows).set(collection.name, rows) };
      if (this.#viewOf(other) !== view) continue;
      data = other;
      changes.push(change);
    }
    return [data, changes];
  }

  #change(data: Data): Change | undefined {
    const random = this.#random;
    const collection = random.pick([...this.#caller.stocked.schema.collections.values()]);
    const rows = data.rows.get(collection.name)!;
    const fields = [...collection.fields.values()].filter(({ readOnly, unique }) => !readOnly && !unique);
    if (rows.length === 0 || fields.length === 0) return undefined;
    const { name, type } = random.pick(fields);
    const { id, [name]: stored } = random.pick(rows);
    const value = scalarOf(type, random);
    return value === stored ? undefined : { collection, id: id as Id, field: name, value };
  }

  /** All that the caller may see, and the listed records, as the caller sees them. */
  #viewOf(data: Data): string {
    const { stocked, rules, request, collection } = this.#caller;
    const seen = hide(stocked.schema, data, { rules: meantBy(rules), request });
    const related = relatedOf(stocked.schema, data);
    const listed = data.rows
      .get(collection.name)!
      .filter((record) => rules.list.some(({ meant }) => interpret(meant, { record, related, request }) === true))
      .map((row) => seen.masked(collection.name, row));
    return JSON.stringify([[...seen.data.rows], [...seen.data.links], listed]);
  }

  async #write({ collection, id, field, value }: Change): Promise<void> {
    const { sql, ident, param } = this.#caller.doors.compiler.sql;
    const { column, type } = collection.fields.get(field)!;
    const types = { string: 'text', int: 'int8', float: 'float8', bool: 'bool', datetime: 'timestamptz' } as const;
    await this.#caller.stocked.db.run(
      sql`UPDATE ${ident(collection.table)} SET ${ident(column)} = ${param(types[type], value)} WHERE id = ${param('uuid', id)}`,
    );
  }

  // -------------------------------------------------------------- the answers

  get #records() {
    const { doors, stocked } = this.#caller;
    return doors.createRecords(stocked.db, stocked.schema);
  }

  async #answer({ kind, body }: Question): Promise<string> {
    const { doors, stocked, collection, access } = this.#caller;
    if (kind === 'aggregate')
      return JSON.stringify(
        await this.#records.aggregate(access, doors.aggregateRequestOf(body, stocked.schema, collection)),
      );
    const request = doors.queryRequestOf(body, stocked.schema, collection);
    const page = await this.#records.query(access, request);
    return JSON.stringify({ ...page, nextCursor: page.nextCursor !== undefined });
  }

  /** The record with its ETag, or the code of the refusal. */
  async #read(id: Id): Promise<string> {
    try {
      return JSON.stringify(await this.#records.read(this.#caller.access, { id, relations: [] }));
    } catch (error) {
      const { code } = error as { readonly code?: string };
      if (code === undefined) throw error;
      return code;
    }
  }

  async #list(): Promise<string> {
    const asked = { filters: [], limit: 100, offset: 0, relations: [], count: true };
    return JSON.stringify(await this.#records.list(this.#caller.access, asked));
  }
}
