/** Takes out of a world what its decision does not need, so that an example shows only its reason. */
import { isAnswer, type SolverQuestion } from '../policy/analyse/solve/solve.ts';
import type { World } from '../policy/analyse/solve/world.ts';
import { type Catalog, type CatalogCollection, type Row, STAMPS } from '../policy/types.ts';
import { own } from '../policy/values.ts';

interface ShrinkPlace {
  readonly catalog: Catalog;
  /** The roles of the caller are part of the question. */
  readonly keepsRoles?: boolean;
}

/** A world that answers the question as the given one does, and from which nothing more can be taken. */
export function smallestWorld(world: World, asking: SolverQuestion, place: ShrinkPlace): World {
  let smallest = world;
  for (;;) {
    const smaller = smallerWorlds(smallest, place).find((each) => isAnswer(asking, each, place.catalog));
    if (smaller === undefined) return smallest;
    smallest = smaller;
  }
}

/** Worlds are made one at a time: most often one of the first will do. */
function* smallerWorlds(world: World, place: ShrinkPlace): Generator<World> {
  yield* withoutRow(world);
  yield* withoutLink(world);
  if (!place.keepsRoles && !world.isGuest) yield* withoutRole(world, place.catalog);
  yield* withoutQuery(world);
  yield* withoutChange(world, place.catalog);
  yield* withoutValue(world, place.catalog);
}

/** Only rows to which nothing refers. */
function* withoutRow(world: World): Generator<World> {
  const { rows, record, request, isGuest } = world;
  const all = [...rows].flatMap(([name, own]) => own.map((row) => ({ name, row, text: JSON.stringify(row) })));
  const rest = JSON.stringify([world.written, request]);
  for (const { name, row } of all) {
    if (row === record || (!isGuest && row.id === request.auth?.id)) continue;
    const id = JSON.stringify(row.id);
    if (rest.includes(id) || all.some((other) => other.row !== row && other.text.includes(id))) continue;
    const left = rows.get(name)!.filter((each) => each !== row);
    const links = world.links.filter(({ owner, element }) => owner !== row.id && element !== row.id);
    yield { ...world, rows: new Map(rows).set(name, left), links };
  }
}

const withoutLink = (world: World): readonly World[] =>
  world.links.map((_, i) => ({ ...world, links: world.links.toSpliced(i, 1) }));

/** A role that another one includes stays. */
function withoutRole(world: World, { roles }: Catalog): readonly World[] {
  const { request } = world;
  const held = (request.auth?.roles ?? []) as readonly string[];
  const includes = (role: string): readonly string[] =>
    (roles.get(role) as { readonly includes?: readonly string[] } | undefined)?.includes ?? [];
  return held
    .filter((role) => !held.some((other) => includes(other).includes(role)))
    .map((role) => ({
      ...world,
      request: { ...request, auth: { ...request.auth, roles: held.filter((each) => each !== role) } },
    }));
}

const withoutQuery = (world: World): readonly World[] =>
  Object.keys(world.request.query).map((name) => ({
    ...world,
    request: { ...world.request, query: without(world.request.query, name) },
  }));

const without = <T extends object>(row: T, name: string): T =>
  Object.fromEntries(Object.entries(row).filter(([key]) => key !== name)) as T;

const isStampName = (name: string): boolean => name === 'id' || STAMPS.includes(name);

/** The members that a column holds. */
function worldColumns({
  fields,
  relations,
}: CatalogCollection): readonly { readonly name: string; readonly required: boolean }[] {
  const references = [...relations.values()].filter((relation) => relation.kind === 'belongs_to');
  return [...fields.values(), ...references].filter(({ name }) => !isStampName(name));
}

/** An update that leaves a member as it is. */
function withoutChange(world: World, { collections }: Catalog): readonly World[] {
  const { record, written, request, collection } = world;
  if (record === undefined || written === undefined) return [];
  return worldColumns(collections.get(collection)!).flatMap(({ name }) => {
    const isNamed = Object.hasOwn(request.data ?? {}, name);
    if (!isNamed && (own(written, name) ?? null) === (own(record, name) ?? null)) return [];
    const data = without(request.data ?? {}, name);
    return [{ ...world, written: { ...written, [name]: own(record, name) ?? null }, request: { ...request, data } }];
  });
}

/** A row whose member is null, where the schema lets it be. A reference by another field than the id needs its value. */
function withoutValue(world: World, { collections }: Catalog): readonly World[] {
  const referredTo = new Set(
    [...collections.values()].flatMap(({ relations }) =>
      [...relations.values()].flatMap((relation) =>
        relation.kind === 'belongs_to' && relation.references !== undefined
          ? [`${relation.collection} ${relation.references.field}`]
          : [],
      ),
    ),
  );
  const stored = [...world.rows].flatMap(([name, rows]) =>
    rows.flatMap((row) =>
      worldColumns(collections.get(name)!).flatMap((column) =>
        column.required || referredTo.has(`${name} ${column.name}`) || (own(row, column.name) ?? null) === null
          ? []
          : [withNull(world, { name, row }, column.name)],
      ),
    ),
  );
  return [...stored, ...withoutCreated(world, collections.get(world.collection)!)];
}

interface WorldRow {
  readonly name: string;
  readonly row: Row;
}

/** The record and the caller are copies of their rows. */
function withNull(world: World, { name, row }: WorldRow, member: string): World {
  const { rows, record, written, request, isGuest } = world;
  const changed = { ...row, [member]: null };
  const isRecord = row === record;
  const isSame = isRecord && written !== undefined && own(written, member) === own(row, member);
  const isCaller = !isGuest && name === 'users' && row.id === request.auth?.id;
  return {
    ...world,
    rows: new Map(rows).set(
      name,
      rows.get(name)!.map((each) => (each === row ? changed : each)),
    ),
    ...(isRecord && { record: changed }),
    ...(isSame && { written: { ...written, [member]: null } }),
    ...(isCaller && { request: { ...request, auth: { ...request.auth, [member]: null } } }),
  };
}

/** A created record that leaves a member out. A default would fill it. */
function withoutCreated(world: World, collection: CatalogCollection): readonly World[] {
  const { record, written, request } = world;
  if (record !== undefined || written === undefined) return [];
  return worldColumns(collection).flatMap((column) => {
    const { name, required } = column;
    if (required || (own(written, name) ?? null) === null) return [];
    if ((column as { readonly default?: unknown }).default !== undefined) return [];
    return [
      {
        ...world,
        written: { ...written, [name]: null },
        request: { ...request, data: without(request.data ?? {}, name) },
      },
    ];
  });
}
