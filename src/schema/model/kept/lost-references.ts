/**
 * Rules over references to records that may be gone: those of rows that are kept, and those that no foreign key ensures.
 * The path of such a reference leads nowhere, as any null step. All other rules rely on foreign keys: a relation of the
 * related record is found by its id alone, and over none, `all` and `none` are true.
 */
import { memoizedBy } from '../../../memoized.ts';
import { type CheckedPolicy, compileChecked, type EmitOptions } from '../../../policy/compile.ts';
import {
  type Action,
  type Catalog,
  type CatalogField,
  type Checked,
  type CheckedOperand,
  type ColumnOperand,
  keyOf,
  type Policy,
  type ToManyPath,
  type ToOneStep,
} from '../../../policy/types.ts';
import { isOfList } from '../../../policy/visit.ts';
import type { MemberAccess, Schema } from '../model.ts';

export interface KeptRows {
  readonly catalog: Catalog;
  /** The collection whose rows are kept. */
  readonly collection: string;
}
/** Left out, the rows are living records. */
type RuledRows = Pick<KeptRows, 'catalog'> & Partial<KeptRows>;
/** The steps to a record, which may be gone. */
type WalkToRecord = Pick<ColumnOperand, 'scope' | 'collection' | 'steps' | 'span'>;
type ComparedWithAll = Pick<ColumnOperand, 'type'> & { readonly least: string | number };

/** The least id of each type. */
const LEAST_IDS = {
  uuid: { type: 'uuid', least: '00000000-0000-0000-0000-000000000000' },
  int: { type: 'int', least: Number.MIN_SAFE_INTEGER },
  string: { type: 'string', least: '' },
} as const satisfies Record<string, ComparedWithAll>;

/** A rule for living records. */
export function compileRule(rule: CheckedPolicy, options?: EmitOptions): Policy {
  const checked = new SafeRule(rule).of(rule.checked);
  return { ...compileChecked({ ...rule, checked }, options), checked: rule.checked };
}

/** The same rules for the rows that are kept. */
export const keptRules = (rules: readonly Policy[], rows: KeptRows, action: Action): readonly Policy[] =>
  rules.map((rule) => keptRule(rule, rows, action));

function keptRule(rule: Policy, rows: KeptRows, action: Action): Policy {
  const checked = new SafeRule(rows).of(rule.checked);
  const { beforeBody, specialise } = compileChecked({ ...rule, checked, catalog: rows.catalog, action });
  return { ...rule, beforeBody, specialise };
}

/** The rules of members that decide who reads them. */
export const keptMemberAccess = (
  memberAccess: ReadonlyMap<string, MemberAccess>,
  rows: KeptRows,
): ReadonlyMap<string, MemberAccess> =>
  new Map(
    [...memberAccess].map(([name, rules]) => {
      const { read } = rules;
      return [name, read === undefined ? rules : { ...rules, read: keptRules(read, rows, 'read') }];
    }),
  );

/** The schema in which the rules for reading a collection decide about former states of its records. */
export const formerSchemaOf = memoizedBy((schema: Schema) => {
  const known = new Map<string, Schema>();
  return (name: string): Schema => {
    const former = known.get(name) ?? madeFormer(schema, name);
    known.set(name, former);
    return former;
  };
});

function madeFormer(schema: Schema, name: string): Schema {
  const collection = schema.collections.get(name)!;
  const rows = { catalog: schema, collection: name };
  const access = { ...collection.access, read: keptRules(collection.access.read, rows, 'read') };
  const memberAccess = keptMemberAccess(collection.memberAccess, rows);
  return { ...schema, collections: new Map(schema.collections).set(name, { ...collection, access, memberAccess }) };
}

const isEmptyList = (operand: CheckedOperand): boolean =>
  operand.kind === 'literal' && Array.isArray(operand.value) && operand.value.length === 0;

class SafeRule {
  readonly #rows: RuledRows;

  constructor(rows: RuledRows) {
    this.#rows = rows;
  }

  /**
   * The tree in which no reference to a record that may be gone decides alone.
   * @param wanted the value of this part by which the rule can be true
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
    return step?.relation.kind === 'belongs_to' && step.from === this.#rows.collection;
  }

  /** True for every record, and unknown after a step that leads nowhere. */
  #isThere(walk: WalkToRecord): Checked {
    const left = this.#idAfter(walk);
    const { span } = walk;
    const { type, least } = LEAST_IDS[this.#keyAfter(walk).kind];
    const right = { kind: 'literal', value: least, type, list: false, span } as const;
    return { kind: 'compare', op: '>=', left, right, span };
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
