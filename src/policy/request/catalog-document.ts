/** The names and types that policies may use, as a JSON document for pages: no table, no column, no rule. */
import { print } from '../../../grammar/printer.ts';
import { memoizedBy } from '../../memoized.ts';
import { namedCondition } from '../check/condition-calls.ts';
import { jsonPartsOf } from '../emit/json-parts.ts';
import type {
  Catalog,
  CatalogCollection,
  CatalogField,
  CatalogKey,
  CatalogRelation,
  Parameter,
  PartType,
} from '../types.ts';

const VERSION = 1;

interface DocumentField extends Omit<CatalogField, 'column' | 'readAs' | 'part' | 'paths'> {
  readonly paths?: Readonly<Record<string, PartType>>;
}
interface DocumentRelation {
  readonly kind: CatalogRelation['kind'];
  readonly name: string;
  readonly collection: string;
  readonly required?: boolean;
  readonly uniqueWithin?: string;
  readonly via?: string;
}
interface DocumentCollection {
  readonly key: CatalogKey['kind'];
  readonly fields: readonly DocumentField[];
  readonly relations: readonly DocumentRelation[];
  /** The keys that a list takes as filters. */
  readonly filters: readonly string[];
}
/** Made by `policyCatalog` of `bylaw/policy` of the same version; for `bylaw/policy/browser`. */
export interface PolicyCatalog {
  readonly version: typeof VERSION;
  readonly roles: readonly string[];
  readonly guests: boolean;
  readonly timezone: string | undefined;
  /** Each after those that it calls. */
  readonly conditions: readonly {
    readonly name: string;
    readonly parameters: readonly Parameter[];
    readonly text: string;
  }[];
  readonly collections: Readonly<Record<string, DocumentCollection>>;
}

export function writeCatalog(catalog: Catalog, filtersOf: (collection: string) => readonly string[]): PolicyCatalog {
  const { roles, guests = false, timezone, conditions = new Map(), collections } = catalog;
  return {
    version: VERSION,
    roles: [...roles.keys()],
    guests,
    timezone,
    conditions: [...conditions.values()].map(({ name, parameters, expr }) => ({ name, parameters, text: print(expr) })),
    collections: Object.fromEntries(
      [...collections.values()].map((collection) => [
        collection.name,
        writtenCollection(collection, filtersOf(collection.name)),
      ]),
    ),
  };
}

/** The names of some collections. Relations to others are left out, and so is all that policies alone may use. */
export function partOfCatalog({ collections, timezone }: Catalog, names: ReadonlySet<string>): Catalog {
  const kept = [...collections].filter(([name]) => names.has(name));
  return {
    roles: new Map(),
    ...(timezone !== undefined && { timezone }),
    collections: new Map(
      kept.map(([name, collection]) => {
        const relations = [...collection.relations].filter(([, relation]) => names.has(relation.collection));
        return [name, { ...collection, relations: new Map(relations) }];
      }),
    ),
  };
}

function writtenCollection(
  { key, fields, relations }: CatalogCollection,
  filters: readonly string[],
): DocumentCollection {
  return {
    key: key?.kind ?? 'uuid',
    fields: [...fields.values()].map(writtenField),
    relations: [...relations.values()].map(({ kind, name, collection, ...rest }) => ({
      kind,
      name,
      collection,
      ...('required' in rest && { required: rest.required }),
      ...('uniqueWithin' in rest && rest.uniqueWithin !== undefined && { uniqueWithin: rest.uniqueWithin }),
      ...('via' in rest && { via: rest.via }),
    })),
    filters,
  };
}

function writtenField(field: CatalogField): DocumentField {
  const {
    name,
    type,
    required,
    unique,
    uniqueWithin,
    index,
    search,
    enum: values,
    min,
    max,
    precision,
    scale,
    paths,
  } = field;
  return {
    name,
    type,
    required,
    unique,
    index,
    ...(uniqueWithin !== undefined && { uniqueWithin }),
    ...(search !== undefined && { search }),
    ...(values !== undefined && { enum: values }),
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
    ...(precision !== undefined && { precision }),
    ...(scale !== undefined && { scale }),
    ...(paths !== undefined && { paths: pathTypes(paths) }),
  };
}

const pathTypes = (paths: NonNullable<CatalogField['paths']>): Readonly<Record<string, PartType>> =>
  Object.fromEntries(Array.from(paths, ([path, { type }]) => [path, type as PartType]));

/** The catalog of a document. Its tables and columns are stand-ins: a page makes no SQL. Throws TypeError. */
export const catalogFromDocument = memoizedBy((document: PolicyCatalog): Catalog => {
  const { version, roles, guests, timezone, conditions } = document;
  if (version !== VERSION)
    throw new TypeError('catalog: expected what `policyCatalog` of `bylaw/policy` of the same version returns');
  const collections = Object.entries(document.collections).map(
    ([name, each]) => [name, readCollection(name, each)] as const,
  );
  const known = new Map<string, ReturnType<typeof namedCondition>>();
  const catalog = {
    roles: new Map(roles.map((role) => [role, undefined])),
    guests,
    timezone,
    conditions: known,
    collections: new Map(collections),
  };
  for (const { text, ...head } of conditions) known.set(head.name, namedCondition(head, text, catalog));
  return catalog;
});

const readCollection = (name: string, { key, fields, relations }: DocumentCollection): CatalogCollection => ({
  name,
  table: name,
  key: { kind: key, column: 'id' },
  fields: new Map(fields.map((field) => [field.name, readDocumentField(field)])),
  relations: new Map(relations.map((relation) => [relation.name, readRelation(name, relation)])),
});

function readDocumentField({ paths, ...field }: DocumentField): CatalogField {
  const { name } = field;
  return { ...field, column: name, ...(paths && { paths: jsonPartsOf({ name, column: name }, paths) }) };
}

function readRelation(owner: string, relation: DocumentRelation): CatalogRelation {
  const { kind, name, collection, required = false, uniqueWithin, via = '' } = relation;
  switch (kind) {
    case 'belongs_to':
      return { kind, name, collection, required, column: `${name}_id`, ...(uniqueWithin && { uniqueWithin }) };
    case 'has_one':
    case 'has_many':
      return { kind, name, collection, via, viaColumn: `${via}_id` };
    case 'many_to_many':
      return { kind, name, collection, linkTable: `${owner}__${name}`, sourceColumn: 'source', targetColumn: 'target' };
  }
}
