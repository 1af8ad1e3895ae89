/** Traversals of the checked tree and of conditions, so that an analysis contains only what it looks for. */
import type { Span } from '../../grammar/syntax.ts';
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type Exists,
  isRoot,
  type Source,
} from './condition.ts';
import { elementOf } from './scalar-types.ts';
import {
  type Checked,
  type CheckedCompare,
  type CheckedOperand,
  type ColumnOperand,
  ELEMENT_VALUE,
  type ElementsPath,
  type Member,
  type RequestOperand,
  type RowScope,
  type ToManyPath,
} from './types.ts';

// ---------------------------------------------------------------- the checked tree

export const isList = (operand: CheckedOperand): boolean => 'list' in operand && operand.list;

/** A value of the caller. */
export const isOfCaller = (operand: CheckedOperand): operand is RequestOperand =>
  operand.kind === 'request' && operand.source === 'auth';

/** `@request.auth.roles` */
export const isRolesOfCaller = (operand: CheckedOperand): boolean => isOfCaller(operand) && operand.name === 'roles';

/** A value that changes while the record and the caller stay as they are. */
export const isOfInstant = (operand: CheckedOperand): boolean =>
  operand.kind === 'now' ||
  (operand.kind === 'request' && operand.source === 'fact' && operand.name.startsWith('now.'));

export const ofCaller = (name: string, span: Span) =>
  ({ kind: 'request', source: 'auth', name, nullable: true, span }) as const;

type OperandMember = Member | Exclude<ColumnOperand['column'], { kind: 'id' }>;
export function memberName(member: OperandMember): string {
  if (member.kind === 'element') return ELEMENT_VALUE;
  return (member.kind === 'field' ? member.field : member.relation).name;
}

/** The member of its own record that a column is, or is reached by; undefined for the id. */
export function ownMemberOf({ steps: [first], column }: ColumnOperand): string | undefined {
  if (first !== undefined) return first.relation.name;
  return column.kind === 'id' ? undefined : memberName(column);
}

/** True if a part other than `and` and `or` meets the test on the way to every branch. */
export function everyBranch(node: Checked, meets: (part: Checked) => boolean): boolean {
  if (node.kind === 'and') return node.items.some((item) => everyBranch(item, meets));
  if (node.kind === 'or') return node.items.every((item) => everyBranch(item, meets));
  return meets(node);
}

/** The conditions directly inside. */
export function partsOf(checked: Checked): readonly Checked[] {
  switch (checked.kind) {
    case 'compare':
      return [checked.left, checked.right].flatMap((side) => (side.kind === 'count' ? [side.condition] : []));
    case 'const':
    case 'is null':
    case 'changed':
      return [];
    case 'and':
    case 'or':
      return checked.items;
    case 'not':
      return [checked.item];
    case 'quantified':
      return [checked.condition];
  }
}

/** The values that the node itself compares or tests. */
export function operandsOf(checked: Checked): readonly CheckedOperand[] {
  switch (checked.kind) {
    case 'compare':
      return [checked.left, checked.right];
    case 'is null':
      return [checked.operand];
    case 'const':
    case 'and':
    case 'or':
    case 'not':
    case 'quantified':
    case 'changed':
      return [];
  }
}

/** Every value that the condition compares or begins a walk at, those within quantifiers included. */
/** Every comparison, those within quantifiers and counts included. */
export const comparesOf = (checked: Checked): readonly CheckedCompare[] => [
  ...(checked.kind === 'compare' ? [checked] : []),
  ...partsOf(checked).flatMap(comparesOf),
];

export function allOperandsOf(checked: Checked): readonly CheckedOperand[] {
  const starts = scopesOf(checked).flatMap((scope) => (scope.kind === 'request' ? [scope.operand] : []));
  return [...operandsOf(checked), ...starts, ...partsOf(checked).flatMap(allOperandsOf)];
}

/** True if the node or one inside it passes the test. */
function some(checked: Checked, test: (node: Checked) => boolean): boolean {
  return test(checked) || partsOf(checked).some((part) => some(part, test));
}

/** The origins of the records that the node itself reads. */
export function scopesOf(checked: Checked): readonly RowScope[] {
  if (checked.kind === 'quantified') return [checked.path.scope];
  if (checked.kind === 'changed') return [{ kind: 'record' }, { kind: 'next' }];
  return operandsOf(checked).flatMap((operand) => {
    if (operand.kind === 'count') return [operand.path.scope];
    return operand.kind === 'column' ? [operand.scope] : [];
  });
}

export const readsNext = (checked: Checked): boolean => some(checked, readsNextItself);

export const readsNextItself = (node: Checked): boolean => scopesOf(node).some(({ kind }) => kind === 'next');

/** Reads `@request.data`. */
export const readsData = (checked: Checked): boolean => some(checked, (node) => readsDataItself(node));

export const readsDataItself = (node: Checked): boolean =>
  operandsOf(node).some((operand) => operand.kind === 'request' && operand.source === 'data') ||
  scopesOf(node).some((scope) => scope.kind === 'request' && scope.operand.source === 'data');

/** The elements of a list field; undefined: the column is not one. */
export function elementsPath({
  scope,
  collection,
  steps,
  column,
  type,
  span,
}: ColumnOperand): ElementsPath | undefined {
  if (column.kind !== 'field' || elementOf(type) === undefined) return undefined;
  const from = steps.at(-1)?.relation.collection ?? collection;
  const relation = { kind: 'elements', name: column.field.name, collection: '', field: column.field } as const;
  return { scope, collection, steps, from, relation, span };
}
export const isOfList = (path: ToManyPath): path is ElementsPath => path.relation.kind === 'elements';

// ---------------------------------------------------------------- conditions

/** The conditions directly inside. */
export function innerOf(cond: Condition): readonly Condition[] {
  switch (cond.kind) {
    case 'and':
    case 'or':
      return cond.items;
    case 'exists':
      return [cond.condition];
    case 'test':
      return [cond.left, cond.right].flatMap((side) => (side.kind === 'count' ? [side.exists] : []));
    case 'const':
    case 'null':
      return [];
  }
}

function ownOperands(cond: Condition): readonly ConditionOperand[] {
  if (cond.kind === 'test') return [cond.left, cond.right];
  if (cond.kind === 'null') return [cond.column];
  if (cond.kind !== 'exists') return [];
  return cond.colocated === undefined ? [cond.key] : [cond.key, cond.colocated.outer];
}

/** The conditions that all hold where the condition does. */
export const conjunctsOf = (cond: Condition): readonly Condition[] => (cond.kind === 'and' ? cond.items : [cond]);

/** The condition itself and all inside. */
export const nodesOf = (cond: Condition): readonly Condition[] => [cond, ...innerOf(cond).flatMap(nodesOf)];

/** It reads rows of the record's tenant. */
export const readsTenants = (cond: Condition): boolean =>
  nodesOf(cond).some((node) => node.kind === 'exists' && node.colocated !== undefined);

/** The same condition over other columns: those of the condition itself and of all inside, or of its tests alone. */
export function withColumns(cond: Condition, change: (column: ColumnRef) => ColumnRef, ofTests = false): Condition {
  const operand = (side: ConditionOperand): ConditionOperand => {
    if (side.kind === 'count') return { ...side, exists: withColumns(side.exists, change, ofTests) as Exists };
    return side.kind === 'column' ? change(side) : side;
  };
  switch (cond.kind) {
    case 'const':
      return cond;
    case 'and':
    case 'or':
      return { ...cond, items: cond.items.map((item) => withColumns(item, change, ofTests)) };
    case 'test':
      return { ...cond, left: operand(cond.left), right: operand(cond.right) };
    case 'null':
      return { ...cond, column: change(cond.column) };
    case 'exists': {
      const condition = withColumns(cond.condition, change, ofTests);
      if (ofTests) return { ...cond, condition };
      const key = cond.key.kind === 'column' ? change(cond.key) : cond.key;
      const { colocated } = cond;
      const beside = colocated && { colocated: { ...colocated, outer: change(colocated.outer) } };
      return { ...cond, key, ...beside, condition };
    }
  }
}

/** Numbers that are added to the slots and to the bound rows of a condition. */
interface Renumbering {
  readonly slots: number;
  readonly sources: number;
}

/** The same condition with other slots and bound rows, to be placed beside a condition that has numbered its own. */
export function renumbered(cond: Condition, by: Renumbering): Condition {
  const source = (of: Source): Source => (isRoot(of.id) ? of : { ...of, id: of.id + by.sources });
  const operand = <T extends ConditionOperand>(side: T): T => {
    if (side.kind === 'column') return { ...side, source: source(side.source) };
    if (side.kind === 'slot') return { ...side, slot: side.slot + by.slots };
    return side.kind === 'count' ? { ...side, exists: renumbered(side.exists, by) } : side;
  };
  switch (cond.kind) {
    case 'const':
      return cond;
    case 'and':
    case 'or':
      return { ...cond, items: cond.items.map((item) => renumbered(item, by)) };
    case 'test':
      return { ...cond, left: operand(cond.left), right: operand(cond.right) };
    case 'null':
      return { ...cond, column: operand(cond.column) };
    case 'exists': {
      const { colocated } = cond;
      const beside = colocated && { colocated: { ...colocated, outer: operand(colocated.outer) } };
      const condition = renumbered(cond.condition, by);
      return { ...cond, source: source(cond.source), key: operand(cond.key), ...beside, condition };
    }
  }
}

/** Every column that is read, with repetitions. */
export const columnsOf = (cond: Condition): readonly ColumnRef[] => [
  ...ownOperands(cond).filter((operand) => operand.kind === 'column'),
  ...innerOf(cond).flatMap(columnsOf),
];

/** The rows that the condition binds, by identifier. */
export function sourcesIn(cond: Condition): ReadonlySet<number> {
  const own = cond.kind === 'exists' ? [cond.source.id] : [];
  return new Set([...own, ...innerOf(cond).flatMap((inner) => [...sourcesIn(inner)])]);
}
