/**
 * Conditions over references to records that may be gone: those that no foreign key ensures, and those of rows that are kept.
 * The path of such a reference leads nowhere, as any null step. All other conditions rely on foreign keys: a relation of the
 * related record is found by its id alone, and over none, `all` and `none` are true.
 */
import { orderOf } from '../operators.ts';
import {
  type Catalog,
  type CatalogField,
  type Checked,
  type CheckedOperand,
  type ColumnOperand,
  keyOf,
  type ToManyPath,
  type ToOneStep,
} from '../types.ts';
import { isOfList } from '../visit.ts';

export interface ReferringRows {
  readonly catalog: Catalog;
  /** A collection whose records refer to ones that may be gone by any belongs_to. */
  readonly kept?: string | undefined;
}
/** The steps to a record, which may be gone. */
type WalkToRecord = Pick<ColumnOperand, 'scope' | 'collection' | 'steps' | 'span'>;
type ComparedWithAll = Pick<ColumnOperand, 'type'> & { readonly least: string | number };

/** The least id of each type. */
const LEAST_IDS = {
  uuid: { type: 'uuid', least: '00000000-0000-0000-0000-000000000000' },
  int: { type: 'int', least: Number.MIN_SAFE_INTEGER },
  string: { type: 'string', least: '' },
} as const satisfies Record<string, ComparedWithAll>;

/** The tree in which no reference to a record that may be gone decides alone. */
export const guardLostReferences = (checked: Checked, rows: ReferringRows): Checked =>
  new LostReferenceGuard(rows).of(checked);

const isEmptyList = (operand: CheckedOperand): boolean =>
  operand.kind === 'literal' && Array.isArray(operand.value) && operand.value.length === 0;

class LostReferenceGuard {
  readonly #rows: ReferringRows;

  constructor(rows: ReferringRows) {
    this.#rows = rows;
  }

  /**
   * The part of the tree with the guards that it needs.
   * @param wanted the value of this part by which the condition can be true
   */
  of(checked: Checked, wanted = true): Checked {
    switch (checked.kind) {
      case 'const':
      case 'changed':
        return checked;
      case 'not':
        return { ...checked, item: this.of(checked.item, !wanted) };
      case 'and':
      case 'or':
        return { ...checked, items: checked.items.map((item) => this.of(item, wanted)) };
      case 'is null': {
        const { operand } = checked;
        return { ...checked, operand: this.#isLostId(operand) ? this.#idAfter(operand) : this.#read(operand) };
      }
      case 'quantified': {
        const { quantifier, path } = checked;
        const condition = this.of(checked.condition, quantifier === 'none' ? !wanted : wanted);
        return this.#leadingSomewhere({ ...checked, condition, path: this.#walked(path) }, [path], wanted);
      }
      case 'compare': {
        const sides = [checked.left, checked.right];
        const [left, right] = sides.map((side) => this.#read(side));
        const walks = sides.flatMap((side): readonly WalkToRecord[] => {
          // No value is in an empty list, and the record is not asked for.
          if (sides.some(isEmptyList)) return [];
          if (side.kind === 'count') return [side.path];
          return this.#isLostId(side) ? [side] : [];
        });
        return this.#leadingSomewhere({ ...checked, left: left!, right: right! }, walks, wanted);
      }
    }
  }

  #read(operand: CheckedOperand): CheckedOperand {
    if (operand.kind === 'count')
      return { ...operand, condition: this.of(operand.condition), path: this.#walked(operand.path) };
    return operand.kind === 'column' ? this.#valueAfter(operand) : operand;
  }

  /** The presence of a value shows that the records before it exist, so a required one is tested as any other. */
  #valueAfter(operand: ColumnOperand): ColumnOperand {
    const walked = this.#walked(operand);
    const { column } = walked;
    if (walked === operand) return operand;
    if (column.kind === 'field')
      return { ...walked, column: { kind: 'field', field: { ...column.field, required: false } } };
    if (column.kind !== 'belongs_to') return walked;
    return { ...walked, column: { kind: 'belongs_to', relation: { ...column.relation, required: false } } };
  }

  /**
   * No step is certain to find a record if one before it, or its own, may be gone: a step that is certain is not taken. The same
   * path if every record exists.
   */
  #walked<Path extends Pick<WalkToRecord, 'steps'>>(path: Path): Path {
    const first = path.steps.findIndex((step) => this.#mayLose(step));
    if (first < 0) return path;
    const steps = path.steps.map((step, i): ToOneStep => {
      const { relation } = step;
      if (i < first || relation.kind !== 'belongs_to') return step;
      return { ...step, relation: { ...relation, required: false } };
    });
    return { ...path, steps };
  }

  /** The id of a related record, which the reference holds even if the record is gone. */
  #isLostId(operand: CheckedOperand): operand is ColumnOperand {
    return operand.kind === 'column' && operand.column.kind === 'id' && this.#mayLose(operand.steps.at(-1));
  }

  /** Neither true nor false where one of these paths leads to a record that is gone. */
  #leadingSomewhere(node: Checked, paths: readonly (WalkToRecord | ToManyPath)[], wanted: boolean): Checked {
    // The record with a list is read.
    const lost = paths.filter((path) => !('relation' in path && isOfList(path)) && this.#mayLose(path.steps.at(-1)));
    return this.#whereRead(node, lost, wanted);
  }

  #whereRead(node: Checked, walks: readonly WalkToRecord[], wanted: boolean): Checked {
    if (walks.length === 0) return node;
    const { span } = node;
    const are = walks.map((walk) => this.#isThere(walk));
    if (wanted) return { kind: 'and', items: [node, ...are], span };
    return { kind: 'or', items: [node, ...are.map((item): Checked => ({ kind: 'not', item, span }))], span };
  }

  #mayLose(step: ToOneStep | undefined): boolean {
    return step?.relation.kind === 'belongs_to' && (step.relation.mayBeLost === true || this.#isKept(step));
  }

  #isKept(step: ToOneStep | undefined): boolean {
    return step?.relation.kind === 'belongs_to' && step.from === this.#rows.kept;
  }

  /** True for every record, and unknown after a step that leads nowhere. */
  #isThere(walk: WalkToRecord): Checked {
    const left = this.#idAfter(walk);
    const { span } = walk;
    const { type, least } = LEAST_IDS[this.#keyAfter(walk).kind];
    const right = { kind: 'literal', value: least, type, list: false, span } as const;
    return { kind: 'compare', op: orderOf('up', false), left, right, span };
  }

  /** The id as a field of the related record, which is read. */
  #idAfter(walk: WalkToRecord): ColumnOperand {
    const { scope, collection, steps, span } = this.#walked(walk);
    const { kind, column } = this.#keyAfter(walk);
    const { type } = LEAST_IDS[kind];
    const field: CatalogField = { name: 'id', type, required: false, column, unique: true, index: false };
    return { kind: 'column', scope, collection, steps, column: { kind: 'field', field }, type, nullable: true, span };
  }

  #keyAfter({ steps }: WalkToRecord) {
    return keyOf(this.#rows.catalog.collections.get(steps.at(-1)!.relation.collection)!);
  }
}
