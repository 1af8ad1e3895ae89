/**
 * The plan of a page: the statements that find it, made of the filters, of what they leave of the
 * list rule, and of the order. A plan serves all requests of a shape, so its statements are forms.
 */

import type { Permit } from '../../policy/access.ts';
import { join, Place, type Sql, SqlForm, sql } from '../../sql.ts';
import { type AccessContext, type Store, type UnindexedUse, visibilityOf } from '../access-context.ts';
import { CapabilityColumns } from '../capabilities.ts';
import { RecordView, withExpanded } from '../record-view.ts';
import { type ScopedRows, scopeOf } from '../scope.ts';
import { anyWindowOf, type Keyset, keysetOf, mostOf, type PlacedRows, windowOf } from './keyset.ts';
import { type AskedPage, linkFilterOf, type PageValues } from './page-request.ts';
import { linkedRows, relatedCondition } from './related-filters.ts';

export class PagePlan {
  readonly keyset: Keyset;
  readonly view: RecordView;
  readonly capabilities: CapabilityColumns | undefined;
  /** Selects one row more than the page shows. */
  readonly statement: SqlForm<PageValues>;
  /** `FROM … WHERE …` of all records that match, if they are counted. */
  readonly source: SqlForm<PageValues> | undefined;
  /**
   * The fields that the page is filtered and sorted by without an index, so that it reads the whole
   * table as it grows. An index of another filter leaves the rest only to narrow its rows.
   */
  readonly unindexed: readonly UnindexedUse[];

  /** @param page of the shape, of whose values none is used */
  constructor(store: Store, access: AccessContext, page: AskedPage) {
    const statements = new PageStatements(store, access, page);
    this.keyset = statements.keyset;
    this.view = statements.view;
    this.capabilities = statements.capabilities;
    this.statement = new SqlForm(statements.page);
    this.source = (page.request.count ?? 'none') === 'none' ? undefined : new SqlForm(statements.source);
    this.unindexed = unindexedUses(store, access, page);
  }
}

/** Makes the statements of a shape; its permits, filters and numbers have places instead of values. */
class PageStatements {
  readonly keyset: Keyset;
  readonly view: RecordView;
  readonly capabilities: CapabilityColumns | undefined;
  readonly #store: Store;
  readonly #access: AccessContext;
  readonly #page: AskedPage;
  readonly #permit: Permit;
  readonly #position: readonly unknown[] | undefined;
  readonly #rows: ScopedRows;
  readonly #filters: readonly Sql[];
  /** Conditions of the filters that name a related record, in the order of these. */
  readonly #related: readonly Sql[];
  /** The records that match, from the links where a filter requires some. */
  readonly #matching: RowSelection;

  constructor(store: Store, access: AccessContext, page: AskedPage) {
    const { collection } = access;
    const { request, filters, related, position } = page;
    const visibility = visibilityOf(access);
    this.#store = store;
    this.#access = access;
    this.#page = page;
    this.#permit = page.permit.placed(({ page: { permit } }: PageValues) => permit);
    this.#position = position?.map((cell, i) => (cell === null ? null : new Place(positionCell(i))));
    const tenant = page.tenant === undefined ? undefined : new Place(({ page: { tenant } }: PageValues) => tenant);
    const inTime = request.isBudgeted ? store.inTime : undefined;
    this.#filters = filters.map((filter, i) => {
      const valuesOf = ({ page: asked }: PageValues) => asked.filters[i]!.values;
      return filter.placed(valuesOf, visibility).where('t', inTime);
    });
    const scope = scopeOf({ store, tenant });
    this.#rows = scope.from(collection.name, 't');
    this.keyset = keysetOf(request.sort ?? [], { scope, visibility, collection: collection.name, alias: 't' });
    const members = withExpanded(request.members, request.expands ?? []);
    this.view = new RecordView(store, access, { collection: collection.name, members, tenant });
    this.capabilities = request.capabilities ? new CapabilityColumns(access) : undefined;
    const listed = { access, scope, rows: this.#rows };
    const ids = related.map((_, i) => new Place(({ page: asked }: PageValues) => asked.related[i]!.id));
    this.#related = related.map((filter, i) => relatedCondition(listed, filter, ids[i]));
    const permitted = page.permit.verdict === 'allow' ? [] : [this.#permit.where('t')];
    const link = linkFilterOf(related);
    const from = link === undefined ? -1 : related.indexOf(link);
    const links = link && linkedRows(listed, { relation: link.relation, id: ids[from] });
    const others = links === undefined ? this.#related : this.#related.toSpliced(from, 1);
    const required = links === undefined ? [] : [links.condition];
    const conditions = [...required, ...this.#filters, ...inOrder(others), ...permitted];
    this.#matching = { rows: links?.rows ?? this.#rows, conditions };
  }

  get source(): Sql {
    const { rows, conditions } = this.#matching;
    return sql`FROM ${rows.where(...conditions)}`;
  }

  get page(): Sql {
    const { branches } = this.#page;
    const most = this.#placed(({ request: { limit } }) => limit + 1);
    const offset = this.#placed(({ request }) => request.offset);
    if (branches !== undefined) {
      const conditions = [...this.#after(this.keyset), ...this.#filters, ...inOrder(this.#related)];
      const { collection } = this.#access;
      const source = { collection, rows: this.#rows, conditions, descending: this.keyset.byId!.descending };
      const first = this.#store.pages.condition(branches, this.#permit, source);
      return this.#selected(this.keyset, { rows: this.#rows, conditions: [first] }, anyWindowOf(most, offset));
    }
    const { halves } = this.keyset;
    if (halves === undefined)
      return this.#range(this.keyset, { where: this.#after(this.keyset), window: windowOf(most, offset) });
    const { column, present, absent } = halves;
    const without = sql`${column} IS NULL`;
    const position = this.#position;
    const none = { rows: 0, place: 0 };
    if (position !== undefined && position[0] === null)
      return this.#range(absent, { where: [...this.#after(absent), without], window: windowOf(most, none) });
    const upTo = this.#placed(({ request }) => request.limit + 1 + request.offset);
    const half = windowOf(upTo, none);
    const withValue = [...this.#after(present), sql`${column} IS NOT NULL`];
    // The statement reads rows without a value only if the rows with a value do not fill the page.
    const isShort = sql`(SELECT count(*) FROM "present") < ${mostOf(upTo.rows, upTo.place)}`;
    // A SELECT by its first word: after a loss of the connection, only a SELECT is sent again.
    return sql`
      SELECT *
        FROM (WITH "present" AS MATERIALIZED (${this.#range(present, { where: withValue, window: half })})
              SELECT *
                FROM "present"
               UNION ALL
             (${this.#range(absent, { where: [without, isShort], window: half })})) AS "page"
       ORDER BY ${this.keyset.order} ${windowOf(most, offset)}`;
  }

  #placed(count: (page: AskedPage) => number): PlacedRows {
    return { rows: count(this.#page), place: new Place(({ page }: PageValues) => count(page)) };
  }

  #after(keyset: Keyset): readonly Sql[] {
    return this.#position === undefined ? [] : [keyset.after(this.#position)];
  }

  #range(keyset: Keyset, { where, window }: KeysetRange): Sql {
    const { rows, conditions } = this.#matching;
    return this.#selected(keyset, { rows, conditions: [...where, ...conditions] }, window);
  }

  #selected(keyset: Keyset, { rows, conditions }: RowSelection, window: Sql): Sql {
    const { capabilities } = this;
    const columns = [...keyset.columns, this.view.columns('t')];
    if (capabilities !== undefined) columns.push(capabilities.of('t'));
    return sql`
      SELECT ${columns.length === 1 ? columns[0]! : join(columns, ', ')}
        FROM ${rows.where(...conditions)}
       ORDER BY ${keyset.order} ${window}`;
  }
}

interface RowSelection {
  readonly rows: ScopedRows;
  readonly conditions: readonly Sql[];
}

interface KeysetRange {
  readonly where: readonly Sql[];
  readonly window: Sql;
}

const positionCell =
  (i: number) =>
  ({ page: { position } }: PageValues) =>
    position![i];

/** In the order of their texts, so that equal sets of filters share a statement. */
const inOrder = (conditions: readonly Sql[]): readonly Sql[] =>
  conditions.toSorted((a, b) => (a.text < b.text ? -1 : 1));

function unindexedUses(store: Store, { collection }: AccessContext, page: AskedPage): readonly UnindexedUse[] {
  const indexed = store.pages.indexedOf(collection);
  const unserved = page.filters.map((filter) => filter.unserved(indexed));
  const isServed = page.related.length > 0 || unserved.includes(undefined);
  if (isServed) return [];
  const filtered = new Set(unserved.flatMap((columns = []) => columns.map(({ name }) => name)));
  const [first] = page.request.sort ?? [];
  const sorted = first === undefined || first.path.steps.length > 0 ? undefined : first.path.field;
  return [
    ...[...filtered].map((field) => ({ collection: collection.name, field, use: 'filter' as const })),
    ...(sorted === undefined || indexed.has(sorted.column)
      ? []
      : [{ collection: collection.name, field: sorted.name, use: 'sort' as const }]),
  ];
}
