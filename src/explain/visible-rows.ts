/** Related rows as a caller may read them: hidden rows are missing, and hidden members of a row are absent. */
import type { PolicyNeeds } from '../policy/analyse/policy-needs.ts';
import { ancestorsOf } from '../policy/emit/decision.ts';
import type { Need, PolicyRequest, Related, Row } from '../policy/types.ts';
import { own } from '../policy/values.ts';
import type { Readable, Visibility } from '../policy/visibility.ts';
import type { WorkBudget } from '../policy/work-budget.ts';
import type { Reading } from '../records/access-context.ts';
import { RememberedRelated } from '../records/relations/remembered-related.ts';
import { scopeOf } from '../records/scope.ts';
import type { Relation } from '../schema/model/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../sql.ts';
import { requestedIn } from './requested-records.ts';

interface VisibleSource extends Pick<Reading, 'store' | 'q' | 'tenant'> {
  readonly visibility: Visibility;
}
interface RowsInSight {
  readonly collection: string;
  readonly record: Row;
  readonly needs: PolicyNeeds;
  readonly request: PolicyRequest;
  readonly related: Related;
  readonly work: WorkBudget;
}
interface VisibleRows {
  readonly record: Row;
  readonly related: Related;
}

/** The steps of a row: its rules decide, and it is copied without what is hidden. */
const ROW_STEPS = 16;

/** Throws `TooMuchWork`. */
export async function visibleRowsOf(source: VisibleSource, loaded: RowsInSight): Promise<VisibleRows> {
  const { collection, record, needs, request, related, work } = loaded;
  const rows = new LoadedIds(source, related);
  rows.add(collection, record);
  rows.walk(collection, [record], needs.record);
  for (const { collection: of, id, needs: inner } of requestedIn(needs, request)) {
    const row = related.one(of, id) ?? { id };
    rows.add(of, row);
    rows.walk(of, [row], inner);
  }
  for (const { size } of rows.ids.values()) work.take(size * ROW_STEPS);
  const sights = new Map<string, ReadonlyMap<string, RowSight>>();
  for (const [name, ids] of rows.ids) sights.set(name, await sightsOf(source, name, [...ids]));
  const visible = new VisibleRelated(source, related, sights);
  return { record: visible.masked(collection, record), related: new RememberedRelated(visible) };
}

/** The ids of the rows that were loaded, by collection. */
class LoadedIds {
  readonly ids = new Map<string, Set<string>>();
  readonly #source: VisibleSource;
  readonly #related: Related;

  constructor(source: VisibleSource, related: Related) {
    this.#source = source;
    this.#related = related;
  }

  add(collection: string, row: Row): void {
    const known = this.ids.get(collection) ?? new Set();
    this.ids.set(collection, known.add(String(row.id)));
  }

  walk(collection: string, rows: readonly Row[], needs: readonly Need[]): void {
    const { relations } = this.#source.store.shape(collection).collection;
    for (const need of needs) {
      const relation = relations.get(need.relation)!;
      const reached = rows.flatMap((row) => this.#reached(collection, row, { relation, need }));
      // Many rows reach the same one: each step would multiply them.
      const found = [...new Map(reached.map((row) => [row.id, row])).values()];
      for (const row of found) this.add(relation.collection, row);
      if (found.length > 0) this.walk(relation.collection, found, need.needs);
    }
  }

  #reached(collection: string, row: Row, { relation, need }: WalkedNeed): readonly Row[] {
    const related = this.#related;
    if (relation.kind !== 'belongs_to') return related.many(collection, relation.name, String(row.id));
    if (need.isFollowed) {
      const relationAbove = { kind: 'ancestors', name: relation.name, collection, via: relation } as const;
      const { rows, next } = ancestorsOf(relationAbove, related, row.id);
      return next === undefined ? rows : [...rows, next];
    }
    const found = related.one(relation.collection, String(own(row, relation.name) ?? ''));
    return found === undefined ? [] : [found];
  }
}
interface WalkedNeed {
  readonly relation: Relation;
  readonly need: Need;
}

/** A row that the caller may read, and the members of it that the caller may not. */
interface RowSight {
  readonly isReadable: boolean;
  readonly hidden: ReadonlySet<string>;
}

async function sightsOf(
  { store, q, tenant, visibility }: VisibleSource,
  name: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, RowSight>> {
  const members = [...store.shape(name).collection.memberAccess.keys()];
  const verdicts = [
    readableCondition(visibility.records(name), 'x'),
    ...members.map((member) => readableCondition(visibility.member(name, member), 'x')),
  ];
  const rows = await q.rows(sql`
    SELECT x.id, ${join(verdicts, ', ')}
      FROM ${scopeOf({ store, tenant })
        .from(name, 'x')
        .where(sql`${ident('x', 'id')} = ANY(${param('uuid[]', ids)})`)}`);
  return new Map(
    rows.map(([id, isReadable, ...shown]) => [
      String(id),
      { isReadable: isReadable === 't', hidden: new Set(members.filter((_, i) => shown[i] !== 't')) },
    ]),
  );
}

/** True, not null, where the caller may read. */
function readableCondition(rule: Readable | undefined, alias: string): Sql {
  if (rule === undefined || rule.verdict === 'allow') return raw('TRUE');
  return rule.verdict === 'deny' ? raw('FALSE') : sql`(${rule.where(alias)}) IS TRUE`;
}

class VisibleRelated implements Related {
  readonly #source: VisibleSource;
  readonly #related: Related;
  readonly #sights: ReadonlyMap<string, ReadonlyMap<string, RowSight>>;

  constructor(source: VisibleSource, related: Related, sights: ReadonlyMap<string, ReadonlyMap<string, RowSight>>) {
    this.#source = source;
    this.#related = related;
    this.#sights = sights;
  }

  one(collection: string, id: string): Row | undefined {
    const row = this.#related.one(collection, id);
    return row === undefined || !this.#isReadable(collection, row) ? undefined : this.masked(collection, row);
  }

  many(collection: string, name: string, id: string): readonly Row[] {
    const relation = this.#source.store.shape(collection).collection.relations.get(name)!;
    const via = relation.kind === 'has_one' || relation.kind === 'has_many' ? relation.via : undefined;
    return this.#related
      .many(collection, name, id)
      .filter((row) => this.#isReadable(relation.collection, row))
      .filter((row) => via === undefined || !this.#sight(relation.collection, row)!.hidden.has(via))
      .map((row) => this.masked(relation.collection, row));
  }

  /** Without the members that are hidden. */
  masked(collection: string, row: Row): Row {
    const hidden = this.#sight(collection, row)?.hidden ?? new Set();
    return Object.fromEntries(Object.entries(row).filter(([name]) => !hidden.has(name)));
  }

  #isReadable(collection: string, row: Row): boolean {
    return this.#sight(collection, row)?.isReadable === true;
  }

  #sight(collection: string, row: Row): RowSight | undefined {
    return this.#sights.get(collection)?.get(String(row.id));
  }
}
