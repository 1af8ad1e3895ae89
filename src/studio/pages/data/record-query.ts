/** The request for the address of the page. */
import type { QueryPage } from '../../../client/client.ts';
import { kept } from '../../app/preferences.ts';
import { service } from '../../data/api-service.ts';
import { leadsToOne, type ServedCollection, type ServedRelation } from '../../data/schema-answer.ts';

export interface StudioRecord {
  readonly id: string | number;
  readonly expand?: Readonly<Record<string, StudioRecord | readonly StudioRecord[] | null>>;
  /** The relations with more records than `expand` holds. */
  readonly expand_more?: readonly string[];
  readonly can?: { readonly update: boolean | 'depends'; readonly delete: boolean };
  readonly [member: string]: unknown;
}

export interface GridColumn {
  readonly name: string;
  /** Given for a field; other columns are references. */
  readonly type?: string;
  readonly reference?: ServedRelation;
}

const ID_COLUMN: readonly GridColumn[] = [{ name: 'id', type: 'id' }];
const TIMES = ['created_at', 'updated_at'];

/** All columns that the grid can show: `id`, fields, references, and the times last. */
export function gridColumnsOf({ fields, relations }: ServedCollection): readonly GridColumn[] {
  const own = fields.map(({ name, type }): GridColumn => ({ name, type }));
  const references = relations.filter(leadsToOne).map((reference): GridColumn => ({ name: reference.name, reference }));
  const [times, others] = [
    own.filter(({ name }) => TIMES.includes(name)),
    own.filter(({ name }) => !TIMES.includes(name)),
  ];
  return [...ID_COLUMN, ...others, ...references, ...times];
}

/** The title first, then as many columns as a page has room for. */
const DEFAULT_COLUMNS = 7;

/** The columns that the address names; else those that this device keeps; else the first ones. */
export function shownColumns(collection: ServedCollection, given: string | null): readonly GridColumn[] {
  const all = gridColumnsOf(collection);
  const named = (given ?? kept(`columns:${collection.name}`))?.split(',');
  const chosen = named?.flatMap((name) => all.filter((column) => column.name === name)) ?? [];
  if (chosen.length > 0) return chosen;
  const title = all.filter(({ name }) => name === collection.title);
  const rest = all.filter(({ name }) => name !== 'id' && name !== collection.title && !TIMES.includes(name));
  return [...title, ...rest, ...all.filter(({ name }) => name === 'updated_at')].slice(0, DEFAULT_COLUMNS);
}

/** The relations that come with one record; it can be asked only for some. */
export function expandedNames({ relations }: ServedCollection): readonly string[] | undefined {
  const names = relations.filter(({ kind }) => kind !== 'has_many').map(({ name }) => name);
  return names.length === 0 ? undefined : names;
}

export interface RecordSearch {
  readonly collection: ServedCollection;
  readonly columns: readonly GridColumn[];
  readonly filter: string;
  /** `title,-score` */
  readonly sort: string;
}

const PAGE_LENGTH = 100;
/** A query takes so many relations. */
const MOST_EXPANDED = 10;

type TitleOf = (collection: string) => string | null | undefined;

/** Related records come with their titles. */
function titlesToExpand(
  columns: readonly GridColumn[],
  titleOf: TitleOf,
): Readonly<Record<string, { fields: string[] }>> {
  const references = columns.flatMap(({ reference }) => (reference === undefined ? [] : [reference]));
  return Object.fromEntries(
    references.slice(0, MOST_EXPANDED).map(({ name, collection }) => {
      const title = titleOf(collection);
      return [name, { fields: title ? [title] : [] }];
    }),
  );
}

export function fetchPage(
  { collection, columns, filter, sort }: RecordSearch,
  titleOf: TitleOf,
  cursor: string | null,
): Promise<QueryPage<StudioRecord>> {
  const expand = titlesToExpand(columns, titleOf);
  const query = {
    ...(filter.trim() === '' ? {} : { filter }),
    ...(sort === '' ? {} : { sort: sort.split(',') }),
    ...(cursor === null ? {} : { cursor }),
    ...(Object.keys(expand).length === 0 ? {} : { expand }),
    limit: PAGE_LENGTH,
    capabilities: true,
  };
  return Promise.resolve(service.collection(collection.name).query(query)) as Promise<QueryPage<StudioRecord>>;
}

export async function countRecords({ collection, filter }: RecordSearch): Promise<QueryPage<StudioRecord>['page']> {
  const query = { ...(filter.trim() === '' ? {} : { filter }), limit: 1, count: 'estimated' as const, fields: ['id'] };
  return (await service.collection(collection.name).query(query)).page;
}
