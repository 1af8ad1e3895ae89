/** `where` of `unique` → the condition of an index. */
import { examine } from '../../policy/check/checker.ts';
import { compileChecked } from '../../policy/compile.ts';
import type { Catalog, Checked, CheckedOperand, Policy } from '../../policy/types.ts';
import { cutByComment, type DocumentPath } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import type { SourceText } from '../file/source.ts';
import type { Bare } from '../model/collections.ts';
import type { BelongsTo, Field, Relation, UniqueKey } from '../model/model.ts';

export interface UniqueReading {
  readonly source: SourceText;
  readonly catalog: Catalog;
  readonly broken: ReadonlySet<string>;
}

/** The members of a collection with the conditions of their keys. */
export function withUniqueConditions(
  collection: Bare,
  shape: CollectionShape | undefined,
  reading: UniqueReading,
): Pick<Bare, 'fields' | 'relations'> {
  const conditionOf = (part: 'fields' | 'relations', member: KeyedMember): UniqueKey | undefined => {
    if (member.uniqueKey === undefined) return undefined;
    const declared = shape?.[part]?.[member.name];
    const unique = typeof declared === 'object' && 'unique' in declared ? declared.unique : undefined;
    const where = typeof unique === 'object' ? unique.where : undefined;
    if (where === undefined) return undefined;
    const path = ['collections', collection.name, part, member.name, 'unique', 'where'];
    const policy = readCondition(where, { ...reading, collection: collection.name, path });
    return policy && { ...member.uniqueKey, where: policy };
  };
  const fields = new Map<string, Field>(collection.fields);
  for (const field of fields.values()) {
    const uniqueKey = conditionOf('fields', field);
    if (uniqueKey !== undefined) fields.set(field.name, { ...field, uniqueKey });
  }
  const relations = new Map<string, Relation>(collection.relations);
  for (const relation of relations.values()) {
    const uniqueKey = relation.kind === 'belongs_to' ? conditionOf('relations', relation) : undefined;
    if (uniqueKey !== undefined) relations.set(relation.name, { ...(relation as BelongsTo), uniqueKey });
  }
  return { fields, relations };
}

type KeyedMember = Pick<Field, 'name' | 'uniqueKey'>;

interface ConditionPlace extends UniqueReading {
  readonly collection: string;
  readonly path: DocumentPath;
}

/** A condition that PostgreSQL takes as that of an index: it compares the record's own values with constants. */
export function readCondition(
  text: string,
  { source, catalog, broken, collection, path }: ConditionPlace,
): Policy | undefined {
  if (source.cutByComment(path)) return source.reportCut(cutByComment(path));
  const { checked, issues } = examine(text, { catalog, collection, action: 'read', errorsOnly: true });
  for (const { code, severity, message, span, fix } of issues) {
    if (broken.has(text.slice(span.start, span.end))) continue;
    source.reportWithin({ code, severity, message, path }, span, fix);
  }
  if (checked === undefined || issues.length > 0) return undefined;
  const foreign = foreignPart(checked);
  if (foreign === undefined) return compileChecked({ text, checked, catalog, action: 'read' });
  const message =
    'an index needs a condition over values of its own record and constants, such as `@record.archived = false`';
  source.reportWithin({ code: 'not_for_index', message, path }, foreign.span);
  return undefined;
}

/** The first part that depends on the request, the time or another record. */
function foreignPart(checked: Checked): Checked | CheckedOperand | undefined {
  switch (checked.kind) {
    case 'and':
    case 'or':
      return firstMatch(checked.items, foreignPart);
    case 'not':
      return foreignPart(checked.item);
    case 'compare':
      return firstMatch([checked.left, checked.right], foreignOperand);
    case 'is null':
      return foreignOperand(checked.operand);
    case 'const':
    case 'quantified':
    case 'changed':
      return checked;
  }
}

function foreignOperand(operand: CheckedOperand): CheckedOperand | undefined {
  if (operand.kind === 'literal') return undefined;
  const isOwn = operand.kind === 'column' && operand.scope.kind === 'record' && operand.steps.length === 0;
  return isOwn && hasOwnValue(operand.column) ? undefined : operand;
}

/** The column has the value that the condition compares. */
const hasOwnValue = (column: Extract<CheckedOperand, { readonly kind: 'column' }>['column']): boolean =>
  column.kind === 'field' || (column.kind === 'belongs_to' && column.relation.references === undefined);

function firstMatch<T, Found>(items: readonly T[], find: (item: T) => Found | undefined): Found | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
