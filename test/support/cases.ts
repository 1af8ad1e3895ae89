/** The cases of test/cases as data: one world, and a file of cases for each area. */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parse } from 'yaml';
import { namedCondition, readHead } from '../../src/policy/check/condition-calls.ts';
import type {
  Action,
  CallerKind,
  Catalog,
  CatalogField,
  CatalogRelation,
  PolicyRequest,
  Row,
  ScalarType,
} from '../../src/policy/types.ts';
import type { World } from '../fuzz/policies/world.ts';
import { type Data, relatedOf } from '../oracle/database.ts';

export interface Case {
  readonly name: string;
  readonly policy: string;
  readonly request: PolicyRequest;
  readonly action: Action;
  /** The half that is asked of an update rule that does not name `@next`. */
  readonly half: 'before' | 'after';
  /** The names of the documents that the policy lets through, in the order of the world. */
  readonly expect: readonly string[];
}
export interface Area {
  readonly area: string;
  readonly cases: readonly Case[];
}
interface Caller {
  readonly auth: string | null;
  readonly kind?: CallerKind;
  readonly roles?: readonly string[];
}
interface WorldFile {
  /** In an order in which each calls only those before it. */
  readonly conditions: Readonly<Record<string, string>>;
  readonly roles: readonly string[];
  readonly collections: Record<
    string,
    { readonly fields: Record<string, string>; readonly relations: Record<string, string> }
  >;
  readonly rows: Record<string, Record<string, Record<string, unknown>>>;
  readonly links: Record<string, Record<string, readonly string[]>>;
  readonly next: Record<string, Record<string, unknown>>;
  readonly callers: Record<string, Caller>;
  readonly now: string;
}
interface CaseFile {
  readonly action?: Action;
  readonly half?: 'before' | 'after';
  readonly cases: readonly {
    readonly name: string;
    readonly policy: string;
    /** `as`: a caller of the world (default: ada). */
    readonly request?: {
      readonly as?: string;
      readonly query?: PolicyRequest['query'];
      readonly data?: Record<string, unknown>;
      readonly facts?: PolicyRequest['facts'];
      readonly now?: string;
    };
    readonly expect: readonly string[];
  }[];
}

const FOLDER = new URL('../cases/', import.meta.url);
const read = <T>(file: string): T => parse(readFileSync(new URL(file, FOLDER), 'utf8')) as T;
const WORLD = read<WorldFile>('world.yaml');
export const COLLECTION = 'docs';
export const DOCUMENTS = Object.keys(WORLD.rows[COLLECTION]!);

/** An identifier from a row's name: `d1` is 00000000-0000-4000-8000-0000000d0001 by its place among all rows. */
const IDS = new Map(
  Object.values(WORLD.rows)
    .flatMap((rows) => Object.keys(rows))
    .map((name, i) => [name, `abcdef00-0000-4000-8000-${String(i + 1).padStart(12, '0')}`]),
);
const idOf = (name: string): string => {
  const id = IDS.get(name);
  if (id === undefined) throw new Error(`test/cases/world.yaml has no row ${name}`);
  return id;
};
/** `{ada}` in a policy, a query or a body is that row's identifier. */
const withIds = (text: string): string => text.replaceAll(/\{([a-z]+[0-9]*)\}/g, (_, name: string) => idOf(name));

const catalog = catalogOf();
const data = dataOf();
export const world: World = { catalog, data, updated: writtenOf('update'), created: writtenOf('create') };

export function areas(): readonly Area[] {
  const files = globSync(['{operators,paths,requests}/*.yaml'], { cwd: FOLDER });
  return files.sort().map((file) => {
    const { cases, action = 'list', half = 'before' } = read<CaseFile>(file);
    return {
      area: basename(file, '.yaml'),
      cases: cases.map((each) => ({
        ...each,
        action,
        half,
        policy: withIds(each.policy),
        request: requestOf(each.request ?? {}),
      })),
    };
  });
}

function requestOf({
  as = 'ada',
  query = {},
  data,
  facts,
  now = WORLD.now,
}: NonNullable<CaseFile['cases'][number]['request']>): PolicyRequest {
  const caller = WORLD.callers[as];
  if (caller === undefined) throw new Error(`test/cases/world.yaml has no caller ${as}`);
  const { kind = 'user', roles = [] } = caller;
  const row = caller.auth === null ? null : world.data.rows.get('users')!.find(({ id }) => id === idOf(caller.auth!))!;
  const ownOf = { user: row, key: row && { id: row.id }, guest: {} } satisfies Record<CallerKind, unknown>;
  const own = ownOf[kind];
  const revived = JSON.parse(withIds(JSON.stringify({ query, data: data ?? {} }))) as {
    query: PolicyRequest['query'];
    data: Record<string, unknown>;
  };
  return { auth: own && { ...own, roles }, kind, facts, ...revived, now };
}

function catalogOf(): Catalog {
  const collections = new Map(
    Object.entries(WORLD.collections).map(([name, { fields, relations }]) => {
      const made: [string, CatalogField][] = Object.entries(fields).map(([field, type]) => [
        field,
        fieldOf(field, type),
      ]);
      const related: [string, CatalogRelation][] = Object.entries(relations).map(([key, text]) => [
        key,
        relationOf({ from: name, name: key, text }),
      ]);
      return [name, { name, table: name, fields: new Map(made), relations: new Map(related) }];
    }),
  );
  let catalog: Catalog = { collections, roles: new Map(WORLD.roles.map((role) => [role, {}])) };
  for (const [key, text] of Object.entries(WORLD.conditions)) {
    const head = readHead(key, catalog);
    if ('code' in head) throw new Error(`test/cases/world.yaml: ${key}: ${head.message}`);
    const condition = namedCondition(head, text, catalog);
    catalog = { ...catalog, conditions: new Map(catalog.conditions).set(head.name, condition) };
  }
  return catalog;
}

function fieldOf(name: string, type: string): CatalogField {
  const required = type.endsWith('!');
  const search = type.startsWith('search ');
  const scalar = type.replace('search ', '').replace('!', '') as ScalarType;
  return { name, type: scalar, required, column: name, unique: false, index: false, search };
}

/** `belongs_to! users` is required; `has_many docs team` is found by `team`. */
function relationOf({ from, name, text }: { from: string; name: string; text: string }): CatalogRelation {
  const [kind = '', collection = '', via = ''] = text.split(' ');
  if (kind === 'has_many' || kind === 'has_one') return { kind, name, collection, via, viaColumn: `${via}_id` };
  if (kind === 'many_to_many') {
    return {
      kind,
      name,
      collection,
      linkTable: `${from}_${name}`,
      sourceColumn: `${from}_id`,
      targetColumn: `${collection}_id`,
    };
  }
  return { kind: 'belongs_to', name, collection, required: kind.endsWith('!'), column: `${name}_id` };
}

function dataOf(): Data {
  const rows = new Map<string, Row[]>();
  for (const [collection, named] of Object.entries(WORLD.rows)) {
    const made = Object.entries(named).map(([name, values]) => ({
      id: idOf(name),
      ...withReferences(collection, values),
    }));
    rows.set(collection, made);
  }
  const links = Object.entries(WORLD.links).map(([key, byName]) => {
    const pairs = Object.entries(byName).flatMap(([source, targets]) =>
      targets.map((target) => [idOf(source), idOf(target)] as const),
    );
    return [key.replace('.', '_'), pairs] as const;
  });
  return { rows, links: new Map(links) };
}

/** Names of rows become their identifiers, alone or in a list. */
function withReferences(collection: string, values: Record<string, unknown>): Record<string, unknown> {
  const { relations } = WORLD.collections[collection]!;
  const read = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(read) : typeof value === 'string' ? idOf(value) : value;
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Object.hasOwn(relations, key) ? read(value) : value]),
  );
}

/**
 * The outcome of a write for each document. An update writes the values in `next`, and leaves the rest. A create makes the same record anew: under an
 * identifier of its own, with the same fields, members and partner.
 */
function writtenOf(action: 'update' | 'create'): World['updated'] {
  const related = relatedOf(catalog, data);
  const made = data.rows.get(COLLECTION)!.map((row, i) => {
    const id = String(row.id);
    const held = {
      tags: related.many(COLLECTION, 'tags', id).map((tag) => tag.id),
      cover: related.many(COLLECTION, 'cover', id)[0]?.id ?? null,
    };
    const changed =
      action === 'update' ? withReferences(COLLECTION, WORLD.next[DOCUMENTS[i]!] ?? {}) : { id: newId(i) };
    return { ...row, ...held, ...changed };
  });
  return new Map([[COLLECTION, made]]);
}

function newId(i: number): string {
  return `abcdef01-0000-4000-8000-${String(i + 1).padStart(12, '0')}`;
}
