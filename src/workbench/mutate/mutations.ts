/** Every change of a rule in one place: what an author may have meant instead. */
import { OPERATORS, orderOf } from '../../policy/operators.ts';
import { isNumeric, isTruth } from '../../policy/scalar-types.ts';
import type {
  Catalog,
  Checked,
  CheckedCompare,
  CheckedOperand,
  CheckedQuantified,
  LiteralOperand,
  Policy,
} from '../../policy/types.ts';
import { textOfPart } from '../rule-places.ts';

export interface Mutation {
  readonly operator: MutationOperator;
  /** The part that was changed. */
  readonly node: Checked;
  readonly from: string;
  readonly to: string;
  /** Undefined: the whole rule, or the whole check, is dropped. */
  readonly checked: Checked | undefined;
}
type MutationOperator =
  | 'operator'
  | 'literal'
  | 'role'
  | 'dropped clause'
  | 'dropped rule'
  | 'logic'
  | 'quantifier'
  | 'negation'
  | 'record'
  | 'transition';

/** Mutations of a rule that are tried. */
export const MOST_MUTATIONS = 200;

interface PartChange extends Pick<Mutation, 'operator' | 'to'> {
  readonly made: Checked;
}
/** Puts a changed part into the whole rule. */
type Rebuild = (part: Checked) => Checked;

export function mutationsOf(rule: MutatedText, catalog: Catalog): readonly Mutation[] {
  const { checked: node, text: from, dropped: to = 'no rule' } = rule;
  const whole: Mutation = { operator: 'dropped rule', node, from, to, checked: undefined };
  return [whole, ...new Mutator(rule, catalog).all(node, (part) => part)].slice(0, MOST_MUTATIONS);
}

/** `dropped`: the words for it being left out. */
export type MutatedText = Pick<Policy, 'checked' | 'text' | 'source'> & { readonly dropped?: string };

class Mutator {
  readonly #rule: MutatedText;
  readonly #catalog: Catalog;

  constructor(rule: MutatedText, catalog: Catalog) {
    this.#rule = rule;
    this.#catalog = catalog;
  }

  all(node: Checked, rebuild: Rebuild): readonly Mutation[] {
    const own = this.#changes(node).map(({ operator, to, made }) => ({
      operator,
      node,
      from: this.#text(node),
      to,
      checked: rebuild(made),
    }));
    return [...own, ...this.#inner(node, rebuild)];
  }

  #text(node: Pick<Checked, 'span'>): string {
    return textOfPart(this.#rule, node);
  }

  #inner(node: Checked, rebuild: Rebuild): readonly Mutation[] {
    switch (node.kind) {
      case 'and':
      case 'or':
        return node.items.flatMap((item, i) =>
          this.all(item, (part) => rebuild({ ...node, items: node.items.with(i, part) })),
        );
      case 'not':
        return this.all(node.item, (part) => rebuild({ ...node, item: part }));
      case 'quantified':
        return this.all(node.condition, (part) => rebuild({ ...node, condition: part }));
      case 'compare':
        return [
          ...this.#inCount(node.left, (left) => rebuild({ ...node, left })),
          ...this.#inCount(node.right, (right) => rebuild({ ...node, right })),
        ];
      case 'const':
      case 'is null':
      case 'changed':
        return [];
    }
  }

  #inCount(operand: CheckedOperand, rebuild: (operand: CheckedOperand) => Checked): readonly Mutation[] {
    if (operand.kind !== 'count' || operand.condition.kind === 'const') return [];
    return this.all(operand.condition, (condition) => rebuild({ ...operand, condition }));
  }

  #changes(node: Checked): readonly PartChange[] {
    switch (node.kind) {
      case 'and':
      case 'or':
        return this.#logicChanges(node);
      case 'not':
        return [{ operator: 'negation', to: this.#text(node.item), made: node.item }];
      case 'compare':
        return this.#compareChanges(node);
      case 'is null': {
        const made = { ...node, negated: !node.negated };
        const to = `${this.#text(node.operand)} ${node.negated ? 'is null' : 'is not null'}`;
        return [{ operator: 'negation', to, made }, ...this.#recordChanges(node)];
      }
      case 'quantified':
        return this.#quantifierChanges(node);
      case 'changed':
        return [{ operator: 'negation', to: `not ${this.#text(node)}`, made: { ...node, unchanged: !node.unchanged } }];
      case 'const':
        return [{ operator: 'literal', to: String(!node.value), made: { ...node, value: !node.value } }];
    }
  }

  #logicChanges(node: Extract<Checked, { kind: 'and' | 'or' }>): readonly PartChange[] {
    const other = node.kind === 'and' ? 'or' : 'and';
    const texts = node.items.map((item) => this.#text(item));
    const dropped = node.items.map((_, i): PartChange => {
      const items = node.items.toSpliced(i, 1);
      const [only] = items;
      const made = items.length === 1 && only !== undefined ? only : { ...node, items };
      return { operator: 'dropped clause', to: texts.toSpliced(i, 1).join(` ${node.kind} `), made };
    });
    return [{ operator: 'logic', to: texts.join(` ${other} `), made: { ...node, kind: other } }, ...dropped];
  }

  #quantifierChanges(node: CheckedQuantified): readonly PartChange[] {
    const others = { any: ['all', 'none'], all: ['any'], none: ['any'] } as const;
    const text = this.#text(node);
    // `@record.readers contains …` is a quantifier, too, in other words.
    if (!text.startsWith(node.quantifier))
      return [{ operator: 'negation', to: `not ${text}`, made: { ...node, quantifier: 'none' } }];
    return others[node.quantifier].map((quantifier) => ({
      operator: 'quantifier',
      to: text.replace(node.quantifier, quantifier),
      made: { ...node, quantifier },
    }));
  }

  // -------------------------------------------------------------- comparisons

  #compareChanges(node: CheckedCompare): readonly PartChange[] {
    const { op, left, right, synthetic } = node;
    if (synthetic) return [];
    const { complement, direction, strict = false } = OPERATORS[op];
    const ops = [complement, direction && orderOf(direction, !strict)].filter((each) => each !== undefined);
    const changed = ops.map((each): PartChange => {
      const to = `${this.#text(left)} ${each} ${this.#text(right)}`;
      return { operator: 'operator', to, made: { ...node, op: each } };
    });
    return [
      ...changed,
      ...this.#literalChanges(node, 'left'),
      ...this.#literalChanges(node, 'right'),
      ...this.#recordChanges(node),
    ];
  }

  #literalChanges(node: CheckedCompare, side: 'left' | 'right'): readonly PartChange[] {
    const operand = node[side];
    const other = node[side === 'left' ? 'right' : 'left'];
    if (operand.kind === 'now') {
      return [1, -1].map((more) => {
        const made = { ...node, [side]: { ...operand, seconds: operand.seconds + more } };
        return { operator: 'literal', to: `${this.#text(node)}, ${more} s later`, made };
      });
    }
    if (operand.kind !== 'literal') return [];
    const isRole = other.kind === 'request' && other.source === 'auth' && other.name === 'roles';
    return this.#otherValues(operand, other, isRole).map((value) => {
      const { exact: _, ...literal } = operand;
      const before = this.#text(operand);
      const to = this.#text(node).replace(before, JSON.stringify(value));
      return { operator: isRole ? 'role' : 'literal', to, made: { ...node, [side]: { ...literal, value } } };
    });
  }

  #otherValues(
    { value, type, list }: LiteralOperand,
    other: CheckedOperand,
    isRole: boolean,
  ): readonly LiteralOperand['value'][] {
    if (list) {
      const all = value as readonly (string | number | boolean)[];
      return all.length < 2 ? [] : all.map((_, i) => all.toSpliced(i, 1));
    }
    if (typeof value === 'boolean' || isTruth(type)) return [!value];
    if (typeof value === 'number' && isNumeric(type)) return [value + 1, value - 1];
    const allowed = isRole ? [...this.#catalog.roles.keys()] : enumOf(other);
    const next = allowed[(allowed.indexOf(value as string) + 1) % allowed.length];
    return next === undefined || next === value ? [] : [next];
  }

  /** The stored record in place of the written one. */
  #recordChanges(node: Extract<Checked, { kind: 'compare' | 'is null' }>): readonly PartChange[] {
    const sides = node.kind === 'compare' ? (['left', 'right'] as const) : (['operand'] as const);
    return sides.flatMap((side) => {
      const operand = (node as unknown as Readonly<Record<string, CheckedOperand>>)[side]!;
      if (operand.kind !== 'column' || operand.scope.kind !== 'next') return [];
      const made = { ...node, [side]: { ...operand, scope: { kind: 'record' } } } as Checked;
      const before = this.#text(operand);
      const to = this.#text(node).replace(before, before.replace('@next', '@record'));
      return [{ operator: 'record' as const, to, made }];
    });
  }
}

const enumOf = (operand: CheckedOperand): readonly (string | number)[] =>
  operand.kind === 'column' && operand.column.kind === 'field' ? (operand.column.field.enum ?? []) : [];
