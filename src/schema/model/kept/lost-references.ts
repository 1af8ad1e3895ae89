/**
 * The rules of a collection for rows that are kept, whose references may lead to records that are gone. The path of such a
 * reference leads nowhere, as any null step. The rules of living records rely on foreign keys instead: a relation of the
 * related record is found by its id alone, and over none, `all` and `none` are true.
 */
import { memoizedBy } from '../../../memoized.ts';
import { compileChecked } from '../../../policy/compile.ts';
import {
  type Action,
  type Catalog,
  type CatalogField,
  type Checked,
  type CheckedOperand,
  type ColumnOperand,
  keyOf,
  type Policy,
} from '../../../policy/types.ts';
import { isOfList } from '../../../policy/visit.ts';
import type { MemberAccess, Schema } from '../model.ts';

export interface KeptRows {
  readonly catalog: Catalog;
  /** The collection whose rows are kept. */
  readonly collection: string;
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

/** The same rules for the rows that are kept. */
export const keptRules = (rules: readonly Policy[], rows: KeptRows, action: Action): readonly Policy[] =>
  rules.map((rule) => keptRule(rule, rows, action));

function keptRule(rule: Policy, rows: KeptRows, action: Action): Policy {
  const checked = new KeptRule(rows).of(rule.checked);
  if (checked === rule.checked) return rule;
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

class KeptRule {
  readonly #rows: KeptRows;

  constructor(rows: KeptRows) {
    this.#rows = rows;
  }

  /** The same tree where no reference of a kept row decides alone. */
  of(checked: Checked): Checked {
    switch (checked.kind) {
      case 'const':
      case 'changed':
        return checked;
      case 'not': {
        const item = this.of(checked.item);
        return item === checked.item ? checked : { ...checked, item };
      }
      case 'and':
      case 'or': {
        const items = checked.items.map((item) => this.of(item));
        return items.every((item, i) => item === checked.items[i]) ? checked : { ...checked, items };
      }
      case 'is null': {
        const { operand } = checked;
        return this.#isLostId(operand) ? { ...checked, operand: this.#idAfter(operand) } : checked;
      }
      case 'quantified': {
        const condition = this.of(checked.condition);
        const node = condition === checked.condition ? checked : { ...checked, condition };
        return this.#leadingSomewhere(node, isOfList(checked.path) ? [] : [checked.path]);
      }
      case 'compare': {
        const [left, right] = [checked.left, checked.right].map((side) => this.#counted(side));
        const isSame = left === checked.left && right === checked.right;
        const node = isSame ? checked : { ...checked, left: left!, right: right! };
        const walks = [checked.left, checked.right].flatMap((side): readonly WalkToRecord[] => {
          if (side.kind === 'count') return isOfList(side.path) ? [] : [side.path];
          return this.#isLostId(side) ? [side] : [];
        });
        return this.#leadingSomewhere(node, walks);
      }
    }
  }

  #counted(operand: CheckedOperand): CheckedOperand {
    if (operand.kind !== 'count') return operand;
    const condition = this.of(operand.condition);
    return condition === operand.condition ? operand : { ...operand, condition };
  }

  /** The id of a related record, which the reference holds even if the record is gone. */
  #isLostId(operand: CheckedOperand): operand is ColumnOperand {
    return operand.kind === 'column' && operand.column.kind === 'id' && this.#mayBeLost(operand);
  }

  /** Unknown where one of these paths leads to a record that is gone. */
  #leadingSomewhere(node: Checked, paths: readonly WalkToRecord[]): Checked {
    const { span } = node;
    const lost = paths.filter((path) => this.#mayBeLost(path));
    return lost.reduce<Checked>((item, path) => {
      const isThere = this.#isThere(path);
      const isNotThere: Checked = { kind: 'not', item: isThere, span };
      return { kind: 'or', items: [{ kind: 'and', items: [item, isThere], span }, isNotThere], span };
    }, node);
  }

  #mayBeLost({ steps }: WalkToRecord): boolean {
    const last = steps.at(-1);
    return last?.relation.kind === 'belongs_to' && last.from === this.#rows.collection;
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
  #idAfter({ scope, collection, steps, span }: WalkToRecord): ColumnOperand {
    const { kind, column } = this.#keyAfter({ steps });
    const { type } = LEAST_IDS[kind];
    const field: CatalogField = { name: 'id', type, required: true, column, unique: true, index: false };
    return { kind: 'column', scope, collection, steps, column: { kind: 'field', field }, type, nullable: true, span };
  }

  #keyAfter({ steps }: Pick<WalkToRecord, 'steps'>) {
    return keyOf(this.#rows.catalog.collections.get(steps.at(-1)!.relation.collection)!);
  }
}
