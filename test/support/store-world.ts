/** A schema on a fresh database of either kind, and callers to ask with. */
import { inject } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { decide, type Permit } from '../../src/policy/access.ts';
import { updateBoundsOf } from '../../src/policy/analyse/update-bounds.ts';
import type { Action, Policy, Row } from '../../src/policy/types.ts';
import { expandsOf } from '../../src/records/expand.ts';
import { type AccessContext, createRecords, type Hooks, type Records } from '../../src/records/records.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { MemberAction, Relation, Schema } from '../../src/schema/model/model.ts';
import { sql, uuid } from '../../src/sql.ts';
import { asWanted } from './cluster/partitioned.ts';
import { openEmbeddedDatabase } from './embedded/embedded.ts';
import { isolatedUrl } from './postgres.ts';
import { findRecords, insertRecord } from './system-records.ts';

export type Kind = 'embedded' | 'postgres';

export const hasPostgres = inject('postgresUrl') !== '';
/** The databases that there are here. */
export const KINDS: readonly Kind[] = hasPostgres ? ['embedded', 'postgres'] : ['embedded'];
/** That of a suite to which the two databases make no difference: PostgreSQL, if there is one. */
export const ONE_KIND = KINDS.slice(-1);
/** A schema of its own in the PostgreSQL of the run. */
export const postgresUrl = (): Promise<string> => isolatedUrl(inject('postgresUrl'));

export async function openKind(kind: Kind): Promise<Database> {
  if (kind === 'embedded') return openEmbeddedDatabase();
  return openDatabase({ url: await postgresUrl(), pipelines: 2 });
}

export function schemaOf(text: string): Schema {
  const { schema, issues } = parseSchema(text);
  if (!schema)
    throw new Error(
      issues
        .filter(({ severity }) => severity === 'error')
        .map((issue) => `${issue.path}: ${issue.message}`)
        .join('\n'),
    );
  return schema;
}

const NOW = '2026-11-21T09:00:00.000000Z';

export class World {
  readonly db: Database;
  readonly schema: Schema;
  readonly records: Records;

  private constructor(db: Database, schema: Schema, hooks: Hooks) {
    this.db = db;
    this.schema = schema;
    this.records = createRecords(db, schema, hooks);
  }

  static async open(db: Database, text: string, hooks: Hooks = {}): Promise<World> {
    const schema = schemaOf(text);
    await applyMigration(asWanted(db, schema), schema);
    return new World(db, schema, hooks);
  }

  async user(email: string, roles: readonly string[] = ['member'], more: Row = {}): Promise<Caller> {
    const id = await insertRecord(this, 'users', { email, roles, ...more });
    const [row] = await findRecords(this, 'users', sql`t.id = ${uuid(id)}`);
    return new Caller(this, row!);
  }
}

interface More {
  readonly query?: Readonly<Record<string, string>>;
  readonly expand?: readonly string[];
  readonly ifVersion?: readonly string[];
  readonly now?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are compared as whole values
export type Json = any;

export class Caller {
  readonly id: string;
  readonly auth: Row;
  readonly #world: World;

  constructor(world: World, auth: Row) {
    this.#world = world;
    this.auth = auth;
    this.id = auth.id as string;
  }

  ask(collection: string, more: More & { readonly data?: unknown } = {}): AccessContext {
    const known = new Map<string, Permit>();
    const { schema } = this.#world;
    const request = {
      auth: this.auth,
      query: more.query ?? {},
      now: more.now ?? NOW,
      ...(more.data === undefined ? {} : { data: more.data as Row }),
    };
    const permit = (name: string, action: Action): Permit => {
      const key = `${name}/${action}`;
      const made = known.get(key) ?? decide({ rules: schema.collections.get(name)!.access[action], request });
      known.set(key, made);
      return made;
    };
    const prospect = (rules: readonly Policy[]) => {
      const made = rules.map((rule) => updateBoundsOf(rule, schema));
      return {
        certain: decide({ rules: made.map(({ certain }) => certain), request }),
        possible: decide({ rules: made.map(({ possible }) => possible), request }),
      };
    };
    const member = (name: string, own: string, action: MemberAction): Permit | undefined => {
      const rules = schema.collections.get(name)!.memberAccess.get(own)?.[action];
      return rules && decide({ rules, request });
    };
    return {
      collection: schema.collections.get(collection)!,
      permit,
      member,
      violation: (_, { violated }, action) => decide({ rules: violated[action], request }),
      prospect,
      auth: this.auth,
      kind: 'user',
      principal: this.id,
      now: request.now,
    };
  }

  #relations(collection: string, names: readonly string[] = []): readonly Relation[] {
    return names.map((name) => this.#world.schema.collections.get(collection)!.relations.get(name)!);
  }

  async create(collection: string, data: object, more: More = {}): Promise<Json> {
    const relations = this.#relations(collection, more.expand);
    const written = await this.#world.records.create(this.ask(collection, { ...more, data }), {
      data: data as Row,
      relations,
    });
    return written.json === undefined ? { id: written.id } : JSON.parse(String(written.json));
  }

  async list(
    collection: string,
    request: Partial<Parameters<Records['list']>[1]> = {},
    more: More = {},
  ): Promise<Json> {
    const asked = {
      limit: 20,
      offset: 0,
      expands: expandsOf(this.#relations(collection, more.expand)),
      ...request,
    };
    const { json, ...page } = await this.#world.records.list(this.ask(collection, more), asked);
    return { data: JSON.parse(String(json)), ...page };
  }

  async read(collection: string, id: string, expand: readonly string[] = []): Promise<Json> {
    const relations = this.#relations(collection, expand);
    const { json } = await this.#world.records.read(this.ask(collection), { id, relations });
    return JSON.parse(String(json));
  }

  async version(collection: string, id: string): Promise<string> {
    return (await this.#world.records.read(this.ask(collection), { id, relations: [] })).version;
  }

  async update(collection: string, id: string, data: object, more: More = {}): Promise<Json> {
    const relations = this.#relations(collection, more.expand);
    const request = { id, data: data as Row, errors: [], relations, ifVersion: more.ifVersion };
    const written = await this.#world.records.update(this.ask(collection, { ...more, data }), request);
    return written.json === undefined ? { id: written.id } : JSON.parse(String(written.json));
  }

  async remove(collection: string, id: string, ifVersion?: readonly string[]): Promise<void> {
    await this.#world.records.remove(this.ask(collection), { id, ifVersion });
  }
}

/** The code of a refusal, with its errors; a test that expects one fails where there is none. */
export async function refusal(work: Promise<unknown>): Promise<Json> {
  try {
    await work;
  } catch (error) {
    const { code, errors } = error as { code?: string; errors?: readonly { pointer?: string; code: string }[] };
    if (code === undefined || errors === undefined) throw error;
    return errors.length === 0
      ? code
      : { [code]: errors.map(({ pointer, code: error }) => `${pointer ?? ''} ${error}`) };
  }
  throw new Error('nothing was refused');
}
