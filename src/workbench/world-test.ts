/** A world as a file of policy tests, with one test about it. */
import type { World } from '../policy/analyse/solve/world.ts';
import { GUEST } from '../policy/check/guests.ts';
import { type CatalogCollection, type Row, SESSION_FACTS, STAMPS } from '../policy/types.ts';
import { own } from '../policy/values.ts';
import { DELETED_AT } from '../schema/model/kept/soft-delete.ts';
import type { Schema } from '../schema/model/model.ts';
import { PredictedOutcomes } from './page/predicted-outcome.ts';
import { PredicateJudge } from './test/predicate.ts';
import { readTests } from './test/read-tests.ts';
import { isMet } from './test/test-result.ts';
import { TestWorld } from './test/test-world.ts';
import { jsonValue } from './world-document.ts';

export interface WorldQuestion {
  /** Given for the rule of a field. */
  readonly member?: string | undefined;
  /** The record of the world is a deleted one. */
  readonly isRestore?: boolean;
  readonly expected: WorldAnswer;
}
/** `422`: the record fails a check. */
export type WorldAnswer = 'yes' | 'no' | 422;

const FILE_OF_WORLD = 'world.policy.yaml';

/** Undefined: a test of this schema cannot say it, such as an id that a policy states, or a key as the caller. */
export function testOfWorld(world: World, schema: Schema, question: WorldQuestion): string | undefined {
  const collection = schema.collections.get(world.collection);
  if (collection === undefined || world.request.kind === 'key') return undefined;
  const text = new WorldFile(world, schema, collection).text(question);
  return readTests(text, FILE_OF_WORLD, schema).tests === undefined ? undefined : text;
}

/** The rules decide the tests as they expect, as far as no database is needed. */
export function isPassing(text: string, schema: Schema): boolean {
  const { tests } = readTests(text, FILE_OF_WORLD, schema);
  if (tests === undefined) return false;
  const judge = new PredicateJudge({ schema, world: TestWorld.ofFile(schema, tests), now: tests.now });
  const outcomes = new PredictedOutcomes(judge, tests.names);
  return tests.expectations.every((each) => isMet(each, outcomes.predicted(each, judge.requestOf(each)), tests));
}

/** A test that passes on the schema. Undefined: there is none, such as of a write that refers to a hidden record. */
export function passingTestOfWorld(world: World, schema: Schema, question: WorldQuestion): string | undefined {
  const text = testOfWorld(world, schema, question);
  return text !== undefined && isPassing(text, schema) ? text : undefined;
}

const RECORD_NAME = 'record';
const CALLER_NAME = 'caller';

const yamlLines = (key: string, value: object): readonly string[] =>
  Object.keys(value).length === 0 ? [] : [`    ${key}: ${JSON.stringify(value)}`];

class WorldFile {
  readonly #world: World;
  readonly #schema: Schema;
  readonly #collection: CatalogCollection;
  /** Names by id. */
  readonly #names = new Map<unknown, string>();

  constructor(world: World, schema: Schema, collection: CatalogCollection) {
    this.#world = world;
    this.#schema = schema;
    this.#collection = collection;
    const caller = world.isGuest ? undefined : world.request.auth?.id;
    if (world.record !== undefined && world.record.id !== caller) this.#names.set(world.record.id, RECORD_NAME);
    if (caller !== undefined) this.#names.set(caller, CALLER_NAME);
    for (const [name, rows] of world.rows)
      for (const { id } of rows) if (!this.#names.has(id)) this.#names.set(id, `${name}_${this.#names.size}`);
  }

  text(question: WorldQuestion): string {
    const { request } = this.#world;
    return [`now: ${request.now}`, ...this.#callers(), ...this.#rows(), 'tests:', ...this.#test(question), ''].join(
      '\n',
    );
  }

  get #caller(): string {
    return this.#world.isGuest ? 'guest' : CALLER_NAME;
  }

  #callers(): readonly string[] {
    const { request, rows, isGuest } = this.#world;
    const auth = request.auth;
    if (isGuest || auth === null) return [];
    const stored = rows.get('users')?.find(({ id }) => id === auth.id) ?? auth;
    const roles = (auth.roles as readonly string[]).filter((role) => this.#schema.roles.has(role));
    return ['as:', `  ${CALLER_NAME}: ${JSON.stringify({ roles, ...this.#members('users', stored) })}`];
  }

  #rows(): readonly string[] {
    const { rows, request, isGuest } = this.#world;
    const isCaller = ({ id }: Row): boolean => !isGuest && id === request.auth?.id;
    const lines = [...rows].flatMap(([name, all]) => {
      const others = all.filter((row) => name !== 'users' || !isCaller(row));
      const named = others.map((row) => `    ${this.#names.get(row.id)}: ${JSON.stringify(this.#members(name, row))}`);
      return named.length === 0 ? [] : [`  ${name}:`, ...named];
    });
    return lines.length === 0 ? [] : ['rows:', ...lines];
  }

  /** The members that a row of a file may have. */
  #members(name: string, row: Row): Readonly<Record<string, unknown>> {
    const { fields, relations } = this.#schema.collections.get(name)!;
    const values = [...fields.values()].flatMap((field) => {
      const value = own(row, field.name);
      const isMissing = value === null || value === undefined;
      return isMissing && field.required ? [] : [[field.name, jsonValue(field, value)] as const];
    });
    const references = [...relations.values()].flatMap((relation) => {
      if (relation.kind === 'belongs_to') return [[relation.name, this.#named(own(row, relation.name))] as const];
      if (relation.kind !== 'many_to_many') return [];
      const links = this.#world.links.filter(
        (link) => link.collection === name && link.relation === relation.name && link.owner === row.id,
      );
      return links.length === 0 ? [] : [[relation.name, links.map(({ element }) => this.#named(element))] as const];
    });
    return Object.fromEntries([...values, ...references]);
  }

  #named(id: unknown): unknown {
    return id === null || id === undefined ? null : (this.#names.get(id) ?? id);
  }

  // -------------------------------------------------------------- the test

  #test({ member, isRestore, expected: word }: WorldQuestion): readonly string[] {
    const { action, record, request } = this.#world;
    const query = [...yamlLines('query', request.query), ...yamlLines('request', this.#facts())];
    if (action === 'create') {
      const data = JSON.stringify(this.#data(undefined));
      return [
        `  - create: ${this.#collection.name}`,
        `    as: ${this.#caller}`,
        ...query,
        `    data: ${data}`,
        `    expect: ${word}`,
      ];
    }
    const row = `  - ${this.#collection.name}: ${this.#names.get(record!.id)}`;
    if (isRestore === true)
      return [row, `    as: ${this.#caller}`, ...query, `    restore: ${record![DELETED_AT]}`, `    expect: ${word}`];
    const data = action === 'update' ? this.#data(record) : {};
    if (Object.keys(data).length > 0)
      return [row, `    as: ${this.#caller}`, ...query, `    update: ${JSON.stringify(data)}`, `    expect: ${word}`];
    const cell = member === undefined || action !== 'read' ? word : `{ ${member}: ${word} }`;
    return [row, ...query, `    ${this.#caller}: { ${action}: ${cell} }`];
  }

  /** The facts of the request, and those about the session of the caller. */
  #facts(): object {
    const { request, isGuest } = this.#world;
    const facts = SESSION_FACTS.map(([name]) => [name, request.auth?.[name] ?? undefined] as const);
    // A guest is its role, and perhaps the id of its session.
    const known = facts.filter(([name, value]) => value !== undefined && (!isGuest || name === GUEST));
    return { ...request.facts, ...Object.fromEntries(known) };
  }

  /** The body that makes the written record of the stored one. */
  #data(record: Row | undefined): Readonly<Record<string, unknown>> {
    const { written = {}, request } = this.#world;
    const { fields, relations } = this.#collection;
    const isChanged = (name: string): boolean => {
      if (Object.hasOwn(request.data ?? {}, name)) return true;
      const [before, after] = [record && own(record, name), own(written, name)];
      return (before ?? null) !== (after ?? null);
    };
    const values = [...fields.keys()].filter((name) => !STAMPS.includes(name) && isChanged(name));
    const references = [...relations.values()].filter(({ kind, name }) => kind === 'belongs_to' && isChanged(name));
    return Object.fromEntries([
      ...values.map((name) => [name, jsonValue(fields.get(name)!, own(written, name))]),
      ...references.map(({ name }) => [name, this.#named(own(written, name))]),
      ...this.#partners(written),
    ]);
  }

  /** The partners and members that the written record names. */
  #partners(written: Row): readonly (readonly [string, unknown])[] {
    return [...this.#collection.relations.values()].flatMap(({ kind, name }) => {
      const held = own(written, name);
      if (kind === 'has_one' && held !== undefined && held !== null) return [[name, this.#named(held)] as const];
      if (kind !== 'many_to_many' || !Array.isArray(held) || held.length === 0) return [];
      return [[name, held.map((id) => this.#named(id))] as const];
    });
  }
}
