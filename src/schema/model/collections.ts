/** `collections` of the file → the collections of the model, without their policies. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import type { ValueType } from '../../policy/scalar-types.ts';
import { idOf, SESSION_FACTS, STAMPS } from '../../policy/types.ts';
import type { DocumentPath, Finding, Report } from '../file/issue.ts';
import type { BelongsToShape, CollectionShape, FieldShape, RelationShape, SchemaFile } from '../file/shape.ts';
import { type AuthTypes, readAuthDefault, readField, readFieldDefault, readUnique } from '../rules/field-rules.ts';
import { builtInFields, builtInRelations, kindOf, takenNames } from './built-in.ts';
import { readCollectionKey } from './collection-keys.ts';
import { hasCompositeKey, withKeyParts } from './composite-key.ts';
import { withCompositeReferences } from './composite-references.ts';
import { checkFormerCollections, checkFormerNames } from './former-names.ts';
import { checkColumns, checkTables, tableOf } from './given-names.ts';
import { historyOf } from './kept/history.ts';
import { softDeleteOf } from './kept/soft-delete.ts';
import { feedOf } from './logged-tables.ts';
import { type BelongsTo, BUILT_IN, type Collection, type Field, type Key, type Relation } from './model.ts';
import { collectionNameIssue, isWord, linkTableOf, memberNameIssue } from './names.ts';
import { checkManagedReferences, hasValueReferences, referencedColumn } from './referenced-columns.ts';
import { titleFieldOf } from './title-field.ts';
import { checkUnmanaged, storedMembers } from './unmanaged.ts';

/** A collection whose rules are not read yet. */
export type Bare = Omit<Collection, 'access' | 'memberAccess' | 'checks'>;
export type WithoutTenantLayout = Omit<Bare, 'tenantLayout'>;

interface CollectionDraft {
  readonly name: string;
  readonly key: Key;
  readonly kind: Collection['kind'];
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
  readonly fields: Map<string, Field>;
  readonly relations: Map<string, Relation>;
}
interface Reporting {
  readonly report: Report;
  /** Collects the name of every member that cannot be declared. */
  readonly broken: Set<string>;
}
interface DeclaringCollections extends Reporting {
  readonly drafts: ReadonlyMap<string, CollectionDraft>;
}
interface DeclaringDefaults extends DeclaringCollections {
  readonly timezone: string;
  readonly auth: AuthTypes;
}

export function declareCollections(
  file: SchemaFile,
  { report, broken, timezone }: Reporting & Pick<DeclaringDefaults, 'timezone'>,
): ReadonlyMap<string, WithoutTenantLayout> {
  const drafts = new Map<string, CollectionDraft>();
  const context: DeclaringCollections = { report, broken, drafts };
  for (const name of collectionNames(file)) {
    const path = ['collections', name];
    const issue = collectionNameIssue(name);
    if (issue !== undefined) report({ ...issue, path, at: 'key' });
    else if (/[A-Z]/.test(name)) report(upperCase(name, path));
    if (issue !== undefined) continue;
    const declared = { name, kind: kindOf(name), path, shape: file.collections?.[name] ?? {} };
    drafts.set(name, collectionDraftOf({ ...declared, key: readCollectionKey(declared, file, report) }));
  }
  for (const draft of drafts.values()) indexBuiltIn(draft, context);
  for (const draft of drafts.values()) addFields(draft, context);
  for (const draft of drafts.values()) addBelongsTo(draft, context);
  for (const draft of drafts.values()) addReverse(draft, context);
  const auth = authTypes(drafts);
  for (const draft of drafts.values()) addDefaults(draft, { ...context, auth, timezone });
  for (const draft of drafts.values()) checkFormerNames(draft, report);
  checkFormerCollections(drafts, report);
  for (const draft of drafts.values()) checkReadOnly(draft, context);
  for (const draft of drafts.values()) checkColumns(draft, report);
  checkTables(drafts, report);
  checkUnmanaged(drafts.values(), report);
  for (const draft of drafts.values()) checkManagedReferences(draft, drafts, report);
  checkRegistration(drafts.get('users')!, context);
  checkLinkTables(context);
  const collections = new Map(
    [...drafts].map(([name, { kind, key, shape, ...draft }]) => {
      const managed = shape.managed ?? true;
      const members = storedMembers({ shape, ...draft }, drafts);
      const keyed = { name, key, shape, managed, path: draft.path, ...members };
      const collection = {
        name,
        kind,
        table: tableOf({ name, shape }),
        managed,
        countsChanges: managed && !hasValueReferences(members),
        showsErrors: shape.errors === 'shown',
        ...feedOf({ shape, path: draft.path }, report),
        ...historyOf({ shape, kind, path: draft.path, table: tableOf({ name, shape }) }, report),
        ...softDeleteOf({ shape, kind, path: draft.path, table: tableOf({ name, shape }) }, report),
        ...members,
        ...withKeyParts(keyed, { catalog: { collections: drafts }, report }),
        title: titleFieldOf({ kind, shape, fields: members.fields, path: draft.path }, report),
        was: shape.was,
      };
      return [name, collection];
    }),
  );
  return withCompositeReferences({ collections, declared: drafts, report });
}

/** It compiles, but only behind a dot: `@record.in`, and no filter can begin with it. */
const wordOfLanguage = (name: string, path: DocumentPath): Finding => ({
  code: 'word_name',
  severity: 'warning',
  message: `\`${name}\` is a word of the policy language, so no filter of a query can name it; choose another name`,
  path,
  at: 'key',
});

/** Addresses distinguish letter case, so a client that guesses `posts` gets 404. */
const upperCase = (name: string, path: DocumentPath): Finding => ({
  code: 'upper_case',
  severity: 'warning',
  message: `the address of \`${name}\` is \`/api/${name}\`, and letter case counts; names of collections are usually lower case`,
  path,
  at: 'key',
});

function collectionNames(file: SchemaFile): readonly string[] {
  const declared = Object.keys(file.collections ?? {});
  return [...declared, ...BUILT_IN.filter((name) => !declared.includes(name))];
}

function collectionDraftOf(given: Omit<CollectionDraft, 'fields' | 'relations'>): CollectionDraft {
  const { kind } = given;
  const columns = stampColumns(given.shape);
  const fields = new Map(
    builtInFields(kind).flatMap((field) => {
      const column = STAMPS.includes(field.name) ? columns.get(field.name) : field.column;
      return column === undefined ? [] : [[field.name, { ...field, column }]];
    }),
  );
  return {
    ...given,
    fields,
    relations: new Map(builtInRelations(kind).map((relation) => [relation.name, relation])),
  };
}

/** The columns of the times that records have, by their names. */
function stampColumns({ timestamps }: CollectionShape): ReadonlyMap<string, string | undefined> {
  if (timestamps === 'none') return new Map();
  return new Map(timestamps === undefined ? STAMPS.map((name) => [name, name]) : Object.entries(timestamps));
}

/** Why `name` is taken: by a field, a relation, the `_id` of a belongs_to, or the `_any` of a to-many. */
function holderOfName(name: string, { fields, relations, kind }: CollectionDraft): string | undefined {
  if (fields.has(name)) return `there is a field \`${name}\` already`;
  if (relations.has(name)) return `there is a relation \`${name}\` already`;
  if (takenNames(kind).includes(name)) return `\`${name}\` means something else on \`${kind}\``;
  for (const relation of relations.values()) {
    if (relation.kind === 'belongs_to' && `${relation.name}_id` === name)
      return `\`${name}\` is the id of the relation \`${relation.name}\``;
    const many = relation.kind === 'has_many' || relation.kind === 'many_to_many';
    if (many && `${relation.name}_any` === name)
      return `\`${name}\` is the filter of the relation \`${relation.name}\``;
  }
  return undefined;
}

/** `true` if the name is free; otherwise the error is reported. */
interface NameClaim {
  readonly name: string;
  readonly path: DocumentPath;
  /** Further names by which the API knows it: `<name>_id`, `<name>_any`. */
  readonly also?: readonly string[];
}

function claim(draft: CollectionDraft, { name, path, also: others = [] }: NameClaim, report: Report): boolean {
  const issue = memberNameIssue(name);
  if (issue !== undefined) {
    report({ ...issue, path, at: 'key' });
    return false;
  }
  if (isWord(name)) report(wordOfLanguage(name, path));
  for (const taken of [name, ...others]) {
    const holder = holderOfName(taken, draft);
    if (holder === undefined) continue;
    const builtIn = draft.kind !== 'plain' && path[2] === 'fields' && draft.fields.has(name);
    const also = taken === name ? '' : `, and the relation \`${name}\` is also called \`${taken}\``;
    const hint = builtIn ? `, which \`${draft.kind}\` has by itself` : also;
    const advice = path[2] === 'relations' && draft.fields.has(taken) ? 'remove the field' : 'choose another name';
    report({ code: 'name_taken', message: `${holder}${hint}; ${advice}`, path, at: 'key' });
    return false;
  }
  return true;
}

const fieldShapeOf = (shape: FieldShape['type'] | FieldShape): FieldShape =>
  typeof shape === 'string' ? { type: shape } : shape;

/** `index: [updated_at]` */
function indexBuiltIn({ kind, shape, fields, path }: CollectionDraft, { report }: DeclaringCollections): void {
  const builtIn = builtInFields(kind).flatMap(({ name }) => (fields.has(name) ? [name] : []));
  for (const [i, name] of (shape.index ?? []).entries()) {
    const field = builtIn.includes(name) ? fields.get(name) : undefined;
    if (field !== undefined) {
      fields.set(name, { ...field, index: true });
      continue;
    }
    const near = nearest(name, builtIn);
    const own = Object.hasOwn(shape.fields ?? {}, name) ? '; write `index: true` at the field instead' : '';
    const message = `expected one of ${builtIn.map((each) => `\`${each}\``).join(', ')}, found \`${name}\`${own || hintOf(near)}`;
    report({ code: 'unknown_field', message, path: [...path, 'index', i], replacement: own === '' ? near : undefined });
  }
}

function addFields(draft: CollectionDraft, { report }: DeclaringCollections): void {
  for (const [name, shape] of Object.entries(draft.shape.fields ?? {})) {
    const path = [...draft.path, 'fields', name];
    if (claim(draft, { name, path }, report))
      draft.fields.set(name, readField(fieldShapeOf(shape), { name, path, report }));
  }
}

interface DeclaredRelation<Shape> {
  readonly name: string;
  readonly shape: Shape;
  readonly path: DocumentPath;
}

function relationsOf(draft: CollectionDraft): readonly DeclaredRelation<RelationShape>[] {
  const entries = Object.entries(draft.shape.relations ?? {});
  return entries.map(([name, shape]) => ({ name, shape, path: [...draft.path, 'relations', name] }));
}

function targetExists(target: string, path: DocumentPath, { drafts, broken, report }: DeclaringCollections): boolean {
  if (drafts.has(target)) return true;
  if (broken.has(target)) return false;
  const near = nearest(target, drafts.keys());
  const message = `unknown collection \`${target}\`${hintOf(near)}`;
  report({ code: 'unknown_collection', message, path: [...path, 'collection'], replacement: near });
  return false;
}

function addBelongsTo(draft: CollectionDraft, context: DeclaringCollections): void {
  for (const { name, shape, path } of relationsOf(draft)) {
    if (shape.kind !== 'belongs_to') continue;
    const free = claim(draft, { name, path, also: [`${name}_id`] }, context.report);
    if (!targetExists(shape.collection, path, context) || !free) {
      disown(name, draft, context);
      continue;
    }
    draft.relations.set(name, belongsToOf({ name, shape, path }, context));
  }
}

function belongsToOf(
  { name, shape, path }: DeclaredRelation<BelongsToShape>,
  { drafts, report }: DeclaringCollections,
): BelongsTo {
  const { collection, required = false, on_delete, was, fields } = shape;
  const references = referencedColumn({ shape, path }, drafts.get(collection)!, report);
  if (required && on_delete === 'set_null') {
    const message = 'a required relation cannot be set to null; expected `cascade` or `restrict`';
    report({ code: 'set_null_required', message, path: [...path, 'on_delete'] });
  }
  return {
    kind: 'belongs_to',
    name,
    collection,
    required,
    needed: required,
    // No table has the column of a reference of several.
    column: fields === undefined ? (shape.column ?? `${name}_id`) : `~${name}`,
    onDelete: on_delete ?? (required || fields !== undefined ? 'restrict' : 'set_null'),
    ...readUnique(shape),
    readOnly: fields !== undefined || (shape.read_only ?? false),
    ...(references && { references }),
    was,
  };
}

function addReverse(draft: CollectionDraft, context: DeclaringCollections): void {
  for (const { name, shape, path } of relationsOf(draft)) {
    if (shape.kind === 'belongs_to') continue;
    const also = shape.kind === 'has_one' ? [] : [`${name}_any`];
    const free = claim(draft, { name, path, also }, context.report);
    const known = targetExists(shape.collection, path, context);
    const relation = known ? reverseOf({ name, shape, path }, draft, context) : undefined;
    if (relation !== undefined && free) draft.relations.set(name, relation);
    else disown(name, draft, context);
  }
}

/** A name that another member has still means that member. */
function disown(name: string, { fields, relations }: CollectionDraft, { broken }: DeclaringCollections): void {
  for (const lost of [name, `${name}_id`]) if (!fields.has(lost) && !relations.has(lost)) broken.add(lost);
}

type Reverse = DeclaredRelation<Exclude<RelationShape, BelongsToShape>>;

function reverseOf(
  { name, shape, path }: Reverse,
  draft: CollectionDraft,
  context: DeclaringCollections,
): Relation | undefined {
  const { kind, collection } = shape;
  if (kind === 'many_to_many') {
    return {
      kind,
      name,
      collection,
      linkTable: linkTableOf(draft.name, name),
      sourceColumn: 'record_id',
      targetColumn: 'member_id',
      was: shape.was,
    };
  }
  const via = viaReference({ name, shape, path }, draft, context);
  if (via === undefined) return undefined;
  // At most one record may reference this one.
  const isComposite = hasCompositeKey(context.drafts.get(collection)!);
  if (kind === 'has_one') {
    // Only a request that sets the has_one needs to set the reference.
    if (via.readOnly && !hasCompositeKey(draft) && !isComposite) {
      const message = `\`${via.name}\` is read-only, and a has_one sets it; expected a has_many`;
      context.report({ code: 'read_only_via', message, path: [...path, 'via'] });
    }
    const { uniqueWithin: _, uniqueKey: __, ...rest } = via;
    context.drafts.get(collection)!.relations.set(via.name, { ...rest, unique: true });
  }
  const readOnly = kind === 'has_one' && isComposite ? { readOnly: true as const } : {};
  return { kind, name, collection, via: via.name, viaColumn: via.column, ...readOnly };
}

function viaReference(
  { shape: { via, collection }, path }: DeclaredRelation<{ readonly via: string; readonly collection: string }>,
  draft: CollectionDraft,
  { drafts, broken, report }: DeclaringCollections,
): BelongsTo | undefined {
  const { relations, fields } = drafts.get(collection)!;
  const found = relations.get(via);
  if (found?.kind === 'belongs_to' && found.collection === draft.name) return found;
  if (broken.has(via)) return undefined;
  const back = [...relations.values()].filter(
    (relation) => relation.kind === 'belongs_to' && relation.collection === draft.name,
  );
  const near =
    nearest(
      via,
      back.map((relation) => relation.name),
    ) ?? (back.length === 1 ? back[0]?.name : undefined);
  const hint =
    near === undefined
      ? `expected a belongs_to of \`${collection}\` to \`${draft.name}\`; declare one`
      : `did you mean \`${near}\`?`;
  const hold =
    found?.kind === 'belongs_to'
      ? `belongs to \`${found.collection}\`, not to \`${draft.name}\``
      : 'is not a belongs_to';
  const message =
    found || fields.has(via)
      ? `\`${collection}.${via}\` ${hold}; ${hint}`
      : `\`${collection}\` has no relation \`${via}\`; ${hint}`;
  report({
    code: 'invalid_via',
    message,
    path: [...path, 'via'],
    replacement: near,
  });
  return undefined;
}

function authTypes(drafts: DeclaringCollections['drafts']): AuthTypes {
  const { fields, relations } = drafts.get('users')!;
  const types = new Map<string, ValueType>([['id', { id: 'users' }], ...SESSION_FACTS]);
  for (const { name, type } of fields.values()) types.set(name, type);
  for (const relation of relations.values()) {
    if (relation.kind === 'belongs_to') types.set(relation.name, idOf({ collections: drafts }, relation.collection));
  }
  return types;
}

function addDefaults(draft: CollectionDraft, { report, drafts, auth, timezone }: DeclaringDefaults): void {
  for (const [name, shape] of Object.entries(draft.shape.fields ?? {})) {
    const field = draft.fields.get(name);
    const { default: raw, read_only: isReadOnly = false } = fieldShapeOf(shape);
    // The name may be that of a field of the service.
    if (field === undefined || field.readOnly !== isReadOnly || raw === undefined) continue;
    const value = readFieldDefault(raw, field, { name, path: [...draft.path, 'fields', name], report, auth, timezone });
    if (value !== undefined) draft.fields.set(name, { ...field, default: value });
  }
  for (const { name, shape, path } of relationsOf(draft)) {
    const relation = draft.relations.get(name);
    if (shape.kind !== 'belongs_to' || relation?.kind !== 'belongs_to' || shape.default === undefined) continue;
    const type = idOf({ collections: drafts }, relation.collection);
    const value = readAuthDefault(shape.default, { type, path, report, auth });
    if (value !== undefined) draft.relations.set(name, { ...relation, default: value });
  }
}

/** A create could never give such a value. */
function checkReadOnly({ shape, path }: CollectionDraft, { report }: DeclaringCollections): void {
  const fields = Object.entries(shape.fields ?? {}).map(
    ([name, each]) => ['fields', name, fieldShapeOf(each)] as const,
  );
  const relations = Object.entries(shape.relations ?? {}).map(([name, each]) => ['relations', name, each] as const);
  for (const [part, name, each] of [...fields, ...relations]) {
    if (!('read_only' in each) || each.read_only !== true || each.required !== true || each.default !== undefined)
      continue;
    const message = `\`${name}\` is required and read-only, so no record could be created; give it a default`;
    report({ code: 'required_read_only', message, path: [...path, part, name, 'required'] });
  }
}

/** Registration takes email and password only, and has no caller. */
function checkRegistration({ fields, relations, path }: CollectionDraft, { report }: DeclaringCollections): void {
  const reason = 'a user registers with email and password only';
  for (const field of fields.values()) {
    if (field.readOnly || !field.required || field.default?.kind === 'constant' || field.default?.kind === 'now')
      continue;
    const message = `\`${field.name}\` is required and has no default, but ${reason}`;
    report({ code: 'required_of_users', message, path: [...path, 'fields', field.name, 'required'] });
  }
  for (const relation of relations.values()) {
    if (relation.kind !== 'belongs_to' || !relation.required) continue;
    const message = `\`${relation.name}\` is required, but ${reason}`;
    report({ code: 'required_of_users', message, path: [...path, 'relations', relation.name, 'required'] });
  }
}

function checkLinkTables({ drafts, report }: DeclaringCollections): void {
  const holders = new Map<string, string>();
  for (const { name: collection, relations, path } of drafts.values()) {
    for (const relation of relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const holder = holders.get(relation.linkTable);
      const at = [...path, 'relations', relation.name];
      if (holder !== undefined)
        report({
          code: 'table_clash',
          message: `its table \`${relation.linkTable}\` would be the table of \`${holder}\` too; choose another name`,
          path: at,
          at: 'key',
        });
      holders.set(relation.linkTable, `${collection}.${relation.name}`);
    }
  }
}
