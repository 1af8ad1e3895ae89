/** Worlds of few rows, as the service makes them: what a body says is what the record becomes, and callers are users. */
import { GUEST_ROW } from '../../../src/policy/check/guests.ts';
import { listElements } from '../../../src/policy/scalars/list-values.ts';
import type {
  Action,
  CatalogCollection,
  Policy,
  PolicyRequest,
  Related,
  Row,
  ScalarType,
} from '../../../src/policy/types.ts';
import { readsNext } from '../../../src/policy/visit.ts';
import { relatedOf } from '../../oracle/database.ts';
import { interpret } from '../../oracle/interpret.ts';
import type { Setting } from '../policies/policies.ts';
import { randomRequest } from '../policies/requests.ts';
import { DATETIMES, NOW, TEXTS } from '../policies/values.ts';
import { randomWorld, type World } from '../policies/world.ts';
import type { Random } from '../random.ts';

/** A policy is asked about these. */
export interface Question {
  readonly request: PolicyRequest;
  readonly record?: Row;
  readonly written?: Row;
}
/** A world with the questions of one action. */
export interface SmallWorld {
  readonly world: World;
  readonly related: Related;
  readonly ids: ReadonlyMap<string, readonly string[]>;
}

const ROWS = 24;
const INCLUDES: Readonly<Record<string, readonly string[]>> = {
  admin: ['editor', 'member'],
  editor: ['member'],
  member: [],
};

export function smallWorld(random: Random): SmallWorld {
  const made = randomWorld(random, { most: ROWS });
  const roles = new Map(Object.entries(INCLUDES).map(([name, includes]) => [name, { name, includes }]));
  const world = { ...made, catalog: { ...made.catalog, roles } };
  const ids = new Map([...world.data.rows].map(([name, rows]) => [name, rows.map(({ id }) => id as string)]));
  return { world, related: relatedOf(world.catalog, world.data), ids };
}

const closed = (roles: readonly string[]): readonly string[] => [
  ...new Set(roles.flatMap((name) => [name, ...INCLUDES[name]!])),
];

type SmallCaller = Pick<PolicyRequest, 'auth' | 'kind'>;

function callerOf({ world }: SmallWorld, now: string, random: Random): SmallCaller {
  const roles = closed(Object.keys(INCLUDES).filter(() => random.chance(0.3)));
  const kind = random.pick(KINDS);
  switch (kind) {
    case 'guest':
      return { kind, auth: { ...GUEST_ROW, ...(random.chance(0.5) && { guest: random.pick(TEXTS) }) } };
    case 'key':
      return { kind, auth: { id: KEY_ID, roles, second_factor: false } };
    case 'user': {
      const earlier = random.pick(DATETIMES);
      const session = { second_factor: random.chance(0.5), signed_in_at: earlier < now ? earlier : now };
      const former = random.chance(0.3) && { former_guest: random.pick(TEXTS) };
      return { kind, auth: { ...random.pick(world.data.rows.get('users')!), ...session, ...former, roles } };
    }
  }
}

/** Users are the most. */
const KINDS = ['guest', 'key', ...Array<'user'>(8).fill('user')] as const;
const KEY_ID = '019b7000-0000-4000-8000-0000000000aa';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Each is a request of its own, with a record of the collection. */
export function questionsOf(small: SmallWorld, setting: Setting, random: Random, count: number): readonly Question[] {
  return Array.from({ length: count }, () => questionOf(small, setting, random)).filter((each) => each !== undefined);
}

function questionOf(small: SmallWorld, setting: Setting, random: Random): Question | undefined {
  const { collection, action } = setting;
  const { query: drawnQuery, now: drawn, facts: drawnFacts } = randomRequest(small.world, setting, random);
  // Beyond the years of real requests, a moved `@now` stops at the last instant.
  const now = drawn < '1900' || drawn > '2999' ? NOW : drawn;
  // A key that is sent has a value.
  const query = Object.fromEntries(Object.entries(drawnQuery).filter(([, value]) => value.length > 0 || value === ''));
  const facts = { ...drawnFacts, method: random.pick(METHODS) };
  const request = { ...callerOf(small, now, random), facts, query, now };
  const rows = small.world.data.rows.get(collection)!;
  const record = random.pick(rows);
  if (action !== 'create' && action !== 'update') return { request, record };
  const made = (action === 'create' ? small.world.created : small.world.updated).get(collection)![
    rows.indexOf(record)
  ]!;
  // A new record with the id of a stored one is a conflict.
  if (action === 'create' && rows.some(({ id }) => id === made.id)) return undefined;
  const written = { ...made, ...stamps(record, now, action) };
  if (!isExclusive(small, collection, written)) return undefined;
  const { fields } = small.world.catalog.collections.get(collection)!;
  const data = bodyOf({ written, before: action === 'create' ? {} : record, fields }, random);
  return { request: { ...request, data }, record, written };
}

function stamps(before: Row, now: string, action: Action): Row {
  if (action === 'create') return { created_at: now, updated_at: now };
  const stored = String(before.updated_at);
  return { created_at: before.created_at, updated_at: stored > now ? stored : now };
}

/** No other record has the place that the written one takes. */
function isExclusive({ world }: SmallWorld, collection: string, written: Row): boolean {
  const { collections } = world.catalog;
  return [...collections.get(collection)!.relations.values()].every((relation) => {
    const id = written[relation.name];
    if (relation.kind !== 'belongs_to' || id == null) return true;
    const others = [...collections.get(relation.collection)!.relations.values()];
    if (!others.some((each) => each.kind === 'has_one' && each.collection === collection && each.via === relation.name))
      return true;
    return world.data.rows.get(collection)!.every((row) => row.id === written.id || row[relation.name] !== id);
  });
}

interface SmallWrite {
  readonly written: Row;
  readonly before: Row;
  readonly fields: CatalogCollection['fields'];
}

/** The members that differ, and some that do not. */
function bodyOf({ written, before, fields }: SmallWrite, random: Random): Row {
  const given = Object.entries(written).filter(
    ([name, value]) =>
      name !== 'id' &&
      name !== 'created_at' &&
      name !== 'updated_at' &&
      ((value ?? null) !== (before[name] ?? null) || random.chance(0.3)),
  );
  return Object.fromEntries(given.map(([name, value]) => [name, inJson(value, fields.get(name)?.type)]));
}

function inJson(value: unknown, type: ScalarType | undefined): unknown {
  if (typeof value !== 'string') return value;
  if (type?.endsWith('[]') === true) return listElements(value);
  return type === 'bytes' ? Buffer.from(value.slice(2), 'hex').toString('base64') : value;
}

/** Judges by the definition of the language. */
export function allows(rules: readonly Policy[], { request, record, written }: Question, place: Judging): boolean {
  const { action, related } = place;
  return rules.some(({ checked }) => {
    if (action === 'create')
      return interpret(checked, { record: written!, isWritten: true, next: written!, related, request }) === true;
    if (action !== 'update') return interpret(checked, { record: record!, related, request }) === true;
    if (readsNext(checked)) return interpret(checked, { record: record!, next: written!, related, request }) === true;
    return (
      interpret(checked, { record: record!, related, request }) === true &&
      interpret(checked, { record: written!, isWritten: true, related, request }) === true
    );
  });
}

export interface Judging {
  readonly action: Action;
  readonly related: Related;
}
