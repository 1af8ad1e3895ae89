/**
 * The cases of test/cases/book: for each chapter of docs/recipes/policies.md, and for a schema of their own, rows, callers, and for each
 * policy of a real product the records that each caller may have, or the writes that each may make.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { compilePolicy } from '../../src/policy/compile.ts';
import type { Action, Catalog, Policy, Row } from '../../src/policy/types.ts';
import { parseSchema, readSchemaCatalog } from '../../src/schema/load.ts';
import type { Collection, Schema } from '../../src/schema/model/model.ts';
import { type Data, relatedOf } from '../oracle/database.ts';

export interface BookCase {
  readonly name: string;
  readonly collection: Collection;
  readonly action: Action;
  readonly rules: readonly Policy[];
  /** The writes of a create or an update. Other rules are asked of the stored records. */
  readonly tries?: readonly Try[];
  /** The names of records, or of tries, by caller. */
  readonly expect: Readonly<Record<string, readonly string[]>>;
}
interface Try {
  readonly name: string;
  /** The stored record of an update. */
  readonly stored?: Row;
  readonly written: Row;
}
export interface Chapter {
  readonly file: string;
  /** In the book, unless the cases have a schema of their own. */
  readonly title?: string;
  readonly schema: Schema;
  readonly data: Data;
  readonly now: string;
  readonly callers: ReadonlyMap<string, Row>;
  /** Names by id. */
  readonly names: ReadonlyMap<string, string>;
  readonly cases: readonly BookCase[];
}

type Given = Readonly<Record<string, unknown>>;
interface CaseFile {
  readonly policy: string;
  readonly on: string;
  readonly action: Action;
  /** Default: the rules of the schema. */
  readonly when?: string;
  /** A field with rules of its own. */
  readonly member?: string;
  readonly tries?: Readonly<Record<string, Given>>;
  readonly expect: BookCase['expect'];
}
interface ChapterFile {
  readonly chapter?: string;
  readonly schema?: string;
  readonly now?: string;
  readonly callers: Readonly<Record<string, readonly string[]>>;
  readonly rows: Readonly<Record<string, Readonly<Record<string, Given>>>>;
  readonly links?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly cases: readonly CaseFile[];
}

const FOLDER = new URL('../cases/book/', import.meta.url);
const BOOK = readFileSync(new URL('../../docs/recipes/policies.md', import.meta.url), 'utf8');
/** The chapters of the book: their titles, and their schemas. */
export const BOOK_SCHEMAS: ReadonlyMap<string, string> = new Map(
  [...BOOK.matchAll(/## (.+)\n\n```yaml bylaw\n([\s\S]*?)```/g)].map(([, title, schema]) => [title!, schema!]),
);
const LONG_AGO = '2025-06-01T00:00:00.000000Z';

export const chapters = (): readonly Chapter[] =>
  readdirSync(FOLDER)
    .sort()
    .map((file) =>
      new ChapterReader(file, parse(readFileSync(new URL(file, FOLDER), 'utf8')) as ChapterFile).chapter(),
    );

class ChapterReader {
  readonly #file: string;
  readonly #given: ChapterFile;
  readonly #schema: Schema;
  /** With the named conditions, which a loaded schema has no more. */
  readonly #catalog: Catalog;
  readonly #ids = new Map<string, string>();

  constructor(file: string, given: ChapterFile) {
    this.#file = file;
    this.#given = given;
    const text = given.schema ?? BOOK_SCHEMAS.get(given.chapter ?? '');
    const { schema, issues } = parseSchema(text ?? '', file);
    if (schema === undefined) throw new Error(`${file}: ${JSON.stringify(issues[0])}`);
    this.#schema = schema;
    this.#catalog = readSchemaCatalog(text ?? '').catalog!;
    const tries = given.cases.flatMap((each) => Object.keys(each.tries ?? {}).map((name) => `${each.policy}: ${name}`));
    const stored = Object.values(given.rows).flatMap((rows) => Object.keys(rows));
    for (const name of [...stored, ...tries])
      this.#ids.set(name, `0b00c000-0000-4000-8000-${String(this.#ids.size + 1).padStart(12, '0')}`);
  }

  chapter(): Chapter {
    const { callers, rows, chapter, now = LONG_AGO } = this.#given;
    const data = this.#data();
    const users = new Map(data.rows.get('users')!.map((row) => [row.id, row]));
    const auth = ([name, roles]: readonly [string, readonly string[]]): readonly [string, Row] => {
      if (rows.users![name] === undefined) throw new Error(`${this.#file} has no user ${name}`);
      return [name, { ...users.get(this.#id(name)), roles }];
    };
    return {
      file: this.#file,
      ...(chapter !== undefined && { title: chapter }),
      schema: this.#schema,
      data,
      now,
      callers: new Map(Object.entries(callers).map(auth)),
      names: new Map([...this.#ids].map(([name, id]) => [id, name])),
      cases: this.#given.cases.map((each) => this.#case(each, data)),
    };
  }

  #id(name: string): string {
    const id = this.#ids.get(name);
    if (id === undefined) throw new Error(`${this.#file} has no row ${name}`);
    return id;
  }

  #collection(name: string): Collection {
    const collection = this.#schema.collections.get(name);
    if (collection === undefined) throw new Error(`the schema of ${this.#file} has no collection ${name}`);
    return collection;
  }

  #case({ policy, on, action, when, member, tries, expect }: CaseFile, data: Data): BookCase {
    const collection = this.#collection(on);
    const rules =
      when !== undefined
        ? [compilePolicy(when, { catalog: this.#catalog, collection: on, action })]
        : member === undefined
          ? collection.access[action]
          : collection.memberAccess.get(member)?.[action as 'read' | 'create' | 'update'];
    if (rules === undefined) throw new Error(`${this.#file}: ${on}.${member} has no rules for ${action}`);
    const tried = Object.entries(tries ?? {}).map(([name, given]) => this.#try({ policy, on, name, given }, data));
    return { name: policy, collection, action, rules, ...(tries && { tries: tried }), expect };
  }

  #try({ policy, on, name, given }: { policy: string; on: string; name: string; given: Given }, data: Data): Try {
    const { of, ...change } = given;
    if (of === undefined) {
      const id = this.#id(`${policy}: ${name}`);
      return { name, written: { ...this.#held(on, id, data), ...this.#row(on, id, change) } };
    }
    const stored = data.rows.get(on)!.find(({ id }) => id === this.#id(String(of)))!;
    return {
      name,
      stored,
      written: { ...stored, ...this.#held(on, String(stored.id), data), ...this.#values(on, change) },
    };
  }

  /** The partners and members of a record, as a written one names them. */
  #held(on: string, id: string, data: Data): Row {
    const related = relatedOf(this.#schema, data);
    const held = [...this.#collection(on).relations.values()].flatMap(({ kind, name }) => {
      const ids = kind === 'has_one' || kind === 'many_to_many' ? related.many(on, name, id).map((row) => row.id) : [];
      return kind === 'has_one' ? [[name, ids[0] ?? null]] : kind === 'many_to_many' ? [[name, ids]] : [];
    });
    return Object.fromEntries(held) as Row;
  }

  #data(): Data {
    const rows = Object.entries(this.#given.rows).map(([collection, named]) => {
      const made = Object.entries(named).map(([name, given]) =>
        this.#row(collection, this.#id(name), { ...FILLED(collection, name), ...given }),
      );
      return [collection, made] as const;
    });
    const links = Object.entries(this.#given.links ?? {}).map(([key, byName]) => {
      const pairs = Object.entries(byName).flatMap(([source, targets]) =>
        targets.map((target) => [this.#id(source), this.#id(target)] as const),
      );
      const [collection = '', name = ''] = key.split('.');
      const relation = this.#collection(collection).relations.get(name);
      if (relation?.kind !== 'many_to_many') throw new Error(`${this.#file}: ${key} is not a many_to_many`);
      return [relation.linkTable, pairs] as const;
    });
    return { rows: new Map(rows), links: new Map(links) };
  }

  /** With null for what is not given. */
  #row(collection: string, id: string, given: Given): Row {
    const { fields, relations } = this.#collection(collection);
    const columns = [...relations.values()].filter(({ kind }) => kind === 'belongs_to');
    const empty = [...fields.keys(), ...columns.map(({ name }) => name)].map((name) => [name, null] as const);
    const stamps = { created_at: LONG_AGO, updated_at: LONG_AGO };
    return { id, ...Object.fromEntries(empty), ...stamps, ...this.#values(collection, given) };
  }

  /** Names of rows become their ids. */
  #values(collection: string, given: Given): Row {
    const { fields, relations } = this.#collection(collection);
    const read = ([name, value]: readonly [string, unknown]): readonly [string, unknown] => {
      if (!fields.has(name) && !relations.has(name)) throw new Error(`${this.#file}: ${collection} has no ${name}`);
      return [name, relations.has(name) && value !== null ? this.#id(String(value)) : value];
    };
    return Object.fromEntries(Object.entries(given).map(read));
  }
}

/** Fields that every user has. */
const FILLED = (collection: string, name: string): Given =>
  collection === 'users' ? { email: `${name}@example.com`, email_verified: true } : {};
