/**
 * Drafts a collection for each table and view of an existing database. Without an option, the tables stay with the program
 * that owns them (`managed: false`). INVARIANT: a migration to a draft drops no column, changes no type and makes no
 * column required (migrations/diff.ts plans it).
 */
import { STAMPS } from '../../policy/types.ts';
import { withoutLength } from '../../schema/fields/kind.ts';
import { BUILT_IN } from '../../schema/model/model.ts';
import { draftField } from './draft-field.ts';
import { draftKey } from './draft-key.ts';
import {
  type DraftNames,
  draftBelongsTo,
  draftCompositeReference,
  type References,
  type ReferencingKey,
  referencesOfTable,
  withReverse,
} from './draft-relation.ts';
import {
  type Declaration,
  type Draft,
  type DraftMember,
  type DraftTable,
  type LeftOut,
  USER_COLUMNS,
} from './draft-table.ts';
import { withCompositeKeys } from './draft-unique.ts';
import { draftedCollections, draftedMembers, isOfCurrentSchema } from './drafted-names.ts';
import { areUnique, type ExistingConstraint, type ExistingTable, isUniqueColumn } from './existing-tables.ts';
import { tableNotes } from './table-notes.ts';
import { ownershipObstacles } from './table-obstacles.ts';
import { whyLeftOut } from './why-left-out.ts';

export interface DraftOptions {
  /** bylaw shall own the tables that it can own as they are. */
  readonly managed?: boolean;
}

export function draftSchema(tables: readonly ExistingTable[], { managed = false }: DraftOptions = {}): Draft {
  const candidates: ExistingTable[] = [];
  const leftOut: LeftOut[] = [];
  for (const table of tables.filter((each) => !isOfService(each))) {
    const reason = whyLeftOut(table);
    if (reason === undefined) candidates.push(table);
    else leftOut.push({ kind: table.kind === 'view' ? 'view' : 'table', name: table.table, reason });
  }
  for (;;) {
    const all = draftTables(candidates);
    const owned = managed ? ownable(all) : new Set<string>();
    const unusable = all.filter(({ name, existing: { table } }) => BUILT_IN.includes(name) && !owned.has(table));
    if (unusable.length === 0) return finished({ all, owned, leftOut, managed });
    for (const draft of unusable) {
      candidates.splice(candidates.indexOf(draft.existing), 1);
      leftOut.push(clashOf(draft, managed));
    }
  }
}

/** The tables that the service makes for itself. */
export const isOfService = (table: ExistingTable): boolean =>
  isOfCurrentSchema(table) && /^(?:bylaw_|_auth_|_files_)/.test(table.name);

/** The table has the name of one that every schema has. */
function clashOf(
  { existing: { table }, obstacles, fields, relations, leftOut }: DraftTable,
  managed: boolean,
): LeftOut {
  const ofMembers = [...fields, ...relations].flatMap((member) => member.obstacles);
  const all = [...obstacles, ...ofMembers, ...leftOut.map(({ name, reason }) => `${name}: ${reason}`)];
  const remedy = managed
    ? all.join('; ')
    : 'give the service a schema of its own, or adopt the table with `--managed` if it fits';
  return { kind: 'table', name: table, reason: `the service has a table of that name in its schema: ${remedy}` };
}

/** All drafts, of the service's own tables too, without a decision about their owner. */
export const undecidedDrafts = (tables: readonly ExistingTable[]): readonly DraftTable[] =>
  draftTables(tables.filter((table) => whyLeftOut(table) === undefined));

function draftTables(candidates: readonly ExistingTable[]): readonly DraftTable[] {
  const known = new Map(candidates.map((table) => [table.table, table]));
  const references = new Map(candidates.map((table) => [table.table, referencesOfTable(table, { known })]));
  const members = new Map(
    candidates.map((table) => [
      table.table,
      draftedMembers(table, {
        references: new Set(references.get(table.table)!.taken.map(({ column }) => column)),
        builtIn: new Set(builtInColumns(table)),
      }),
    ]),
  );
  const names = { known, collections: draftedCollections(candidates), members };
  const drafts = candidates.map((table) => draftTable(table, references.get(table.table)!, names));
  const keys = drafts.flatMap((draft) => referencingKeys(draft, references.get(draft.existing.table)!, names));
  return drafts.map((draft) => withReverse(draft, keys));
}

function draftTable(table: ExistingTable, references: References, names: DraftNames): DraftTable {
  const members = names.members.get(table.table)!;
  const builtIn = new Set(builtInColumns(table));
  const taken = new Map(references.taken.map(({ column, key }) => [column, key]));
  const columns = table.columns.filter(({ name }) => !builtIn.has(name) && name !== '_version');
  const all = columns
    .filter(({ name }) => !taken.has(name))
    .map((column) => draftField(table, column, members.get(column.name)!));
  const name = names.collections.get(table.table)!;
  return {
    name,
    existing: table,
    declared: declaredOf(table, name, members),
    fields: all.filter((field) => 'declared' in field),
    relations: [
      ...columns.flatMap((column) => {
        const key = taken.get(column.name);
        return key === undefined ? [] : [draftBelongsTo(table, { column, key }, names)];
      }),
      ...compositeReferences(table, references, names).map(({ member }) => member),
    ],
    notes: tableNotes(table),
    leftOut: [...all.filter((field) => 'reason' in field), ...references.leftOut],
    obstacles: ownershipObstacles(table),
  };
}

/** The keys of a collection that bylaw does not own. */
function declaredOf(table: ExistingTable, name: string, members: ReadonlyMap<string, string>): Declaration {
  const { columns = [], declared } = draftKey(table) ?? {};
  const id = columns.length > 1 ? columns.map((column) => members.get(column)) : declared;
  const stamps = stampsOfTable(table).map((column) => [column, column] as const);
  return {
    ...(table.table !== name && { table: table.table }),
    managed: false,
    ...(id !== undefined && { id }),
    ...(stamps.length < STAMPS.length && { timestamps: stamps.length === 0 ? 'none' : Object.fromEntries(stamps) }),
  };
}

/** The columns that have no member: those of the key, of the times, and of accounts. */
function builtInColumns(table: ExistingTable): readonly string[] {
  const { columns = [] } = draftKey(table) ?? {};
  const ofUsers = table.table === 'users' ? Object.keys(USER_COLUMNS) : [];
  return [...(columns.length === 1 ? columns : []), ...stampsOfTable(table), ...ofUsers];
}

/** The columns that hold the times of a record. */
const stampsOfTable = ({ columns }: ExistingTable): readonly string[] =>
  STAMPS.filter((stamp) =>
    columns.some(({ name, type }) => name === stamp && withoutLength(type) === 'timestamp with time zone'),
  );

function referencingKeys(
  draft: DraftTable,
  { taken, composite }: References,
  names: DraftNames,
): readonly ReferencingKey[] {
  const { existing } = draft;
  const { members } = names;
  const ofOne = taken.map(({ column, key }) => ({
    from: draft.name,
    member: members.get(existing.table)!.get(column)!,
    to: key.table!,
    // A request that sets a has_one would leave another reference of the column incomplete.
    unique:
      isUniqueColumn(existing, column) &&
      (draftKey(existing)!.columns.length > 1 || !composite.some(({ columns }) => columns.includes(column))),
  }));
  const ofSeveral = compositeReferences(existing, { composite }, names).map(({ member: { name }, key, columns }) => ({
    from: draft.name,
    member: name,
    to: key.table!,
    unique: areUnique(existing, columns),
  }));
  return [...ofOne, ...ofSeveral];
}

interface DraftedReference {
  readonly member: DraftMember;
  readonly key: ExistingConstraint;
  readonly columns: readonly string[];
}

function compositeReferences(
  table: ExistingTable,
  { composite }: Pick<References, 'composite'>,
  names: DraftNames,
): readonly DraftedReference[] {
  const members = [...names.members.get(table.table)!.values()];
  const taken = new Set([...members, ...members.map((name) => `${name}_id`)]);
  return composite.map((reference) => {
    const member = draftCompositeReference(table, reference, { ...names, taken });
    for (const name of [member.name, `${member.name}_id`]) taken.add(name);
    return { member, ...reference };
  });
}

/** The tables that bylaw can own as they are. They reference each other only, because an owned table keeps its foreign keys. */
function ownable(drafts: readonly DraftTable[]): ReadonlySet<string> {
  const owned = new Set(drafts.filter(isOwnable).map(({ existing }) => existing.table));
  for (;;) {
    const lost = drafts.filter(({ existing: { table, constraints } }) => {
      return owned.has(table) && constraints.some(({ kind, table: to }) => kind === 'f' && !owned.has(to!));
    });
    for (const { existing } of lost) owned.delete(existing.table);
    if (lost.length === 0) return owned;
  }
}

const isOwnable = ({ obstacles, leftOut, fields, relations }: DraftTable): boolean =>
  leftOut.length === 0 &&
  [obstacles, ...[...fields, ...relations].map((member) => member.obstacles)].every(({ length }) => length === 0);

interface Finished extends Required<DraftOptions> {
  readonly all: readonly DraftTable[];
  readonly owned: ReadonlySet<string>;
  readonly leftOut: readonly LeftOut[];
}

function finished({ all, owned, leftOut, managed }: Finished): Draft {
  const drafted = all.map((draft) => (owned.has(draft.existing.table) ? withCompositeKeys(asOwned(draft)) : draft));
  // The remedies are of use only to those who want bylaw to own the tables.
  return { drafted: managed ? drafted : drafted.map(withoutObstacles), leftOut };
}

/** bylaw fills in the values of its own tables itself, so a column is required if it is never null. */
function asOwned({ declared: { table }, ...draft }: DraftTable): DraftTable {
  const required = new Set(draft.existing.columns.filter((column) => column.required).map(({ name }) => name));
  return {
    ...draft,
    declared: table === undefined ? {} : { table },
    fields: draft.fields.map(({ declared: { type, ...limits }, ...field }) => ({
      ...field,
      declared: { type, ...(required.has(field.column!) && { required: true }), ...limits },
    })),
  };
}

const withoutObstacles = (draft: DraftTable): DraftTable => {
  const bare = (member: DraftMember): DraftMember => ({ ...member, obstacles: [] });
  return { ...draft, obstacles: [], fields: draft.fields.map(bare), relations: draft.relations.map(bare) };
};
