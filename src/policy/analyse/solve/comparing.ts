/** Comparisons → formulas: the operands are reached, and the operator is asserted of their terms. */
import type { CompareOp } from '../../../../grammar/syntax.ts';
import { holdsOf, literalElements } from '../../lower/specialise.ts';
import { equal, equalityOf, isMember, OPERATORS, type Operator } from '../../operators.ts';
import { elementOf, gridOf, isNumeric, isText, isTo, type ValueType } from '../../scalar-types.ts';
import { canEqual, gridTest, isOnGrid, numberTest } from '../../scalars/numerals.ts';
import type {
  CheckedCompare,
  CheckedOperand,
  ColumnOperand,
  CountOperand,
  ElementsPath,
  LiteralOperand,
  RequestOperand,
} from '../../types.ts';
import { movedNow, type Scalar } from '../../values.ts';
import { elementsPath, isList, isOfCaller, isRolesOfCaller, ofCaller } from '../../visit.ts';
import type { ListVariable } from './asked-request.ts';
import { isIdText } from './domains.ts';
import { all, atom, CUT, constantly, type Formula, NO, someOf } from './formula.ts';
import type { CountedQuestion, Names, Paths, Proposition } from './questions.ts';
import { BLANK, rootOf, Term } from './variables.ts';

/** A side that has its value in the policy. */
interface Known {
  readonly value: Scalar;
  readonly exact: string | undefined;
  readonly type: ValueType;
}
type TermSide = Term | Known;
type ValueOperand = Exclude<CheckedOperand, CountOperand>;

/** The comparison that is asked for: the operator, or what is the opposite of it for present sides. */
interface AskedComparison {
  readonly op: CompareOp;
  readonly holds: boolean;
  readonly type: ValueType;
}
/** The counts that a value of a record or of a request is compared with. */
const COUNTS = [0, 1, 2, 3];

const ELEMENT = ' element';

/** A list field of users; not the roles. */
export const isListOfCaller = (operand: CheckedOperand): boolean =>
  isList(operand) && isOfCaller(operand) && !isRolesOfCaller(operand);

/** A list field in the body of a write. */
export const isListOfBody = (operand: CheckedOperand): operand is RequestOperand =>
  isList(operand) && operand.kind === 'request' && operand.source === 'data';

export class ComparisonFormulas {
  readonly #of: Paths;

  constructor(paths: Paths) {
    this.#of = paths;
  }

  formula(node: CheckedCompare, names: Names, question: Proposition): Formula {
    const { left, right, op } = node;
    const holder = [left, right].map((side) => this.#elementsPath(side));
    const path = holder.find((each) => each !== undefined);
    if (path !== undefined)
      return this.#inField(node, path, { names, question, element: holder[0] === path ? right : left });
    if (left.kind === 'count') return this.#count({ node, op, count: left, other: right }, names, question);
    if (right.kind === 'count')
      return this.#count({ node, op: OPERATORS[op].mirror!, count: right, other: left }, names, question);
    const list = isList(right) ? right : isList(left) ? left : undefined;
    if (list !== undefined) {
      const element = (list === right ? left : right) as ValueOperand;
      if (isListOfBody(list)) return this.#inBody(node, { names, question, element }, list);
      return this.#element({ node, element, list: list as LiteralOperand | RequestOperand }, names, question);
    }
    return this.#reach(left, { node, names, question }, (a) =>
      this.#reach(right as ValueOperand, { node, names, question }, (b) => this.#compare(node, [a, b], question)),
    );
  }

  /** The elements of a list field, of a record or of the caller. */
  #elementsPath(operand: CheckedOperand): ElementsPath | undefined {
    if (operand.kind === 'column') return elementsPath(operand);
    if (!isListOfCaller(operand)) return undefined;
    const { name, span } = operand as RequestOperand;
    const field = this.#of.rows.catalog.collections.get('users')?.fields.get(name);
    if (field === undefined) return undefined;
    const id: RequestOperand = { ...ofCaller('id', span), type: { id: 'users' }, list: false };
    const relation = { kind: 'elements', name, collection: '', field } as const;
    return { scope: { kind: 'request', operand: id }, collection: 'users', steps: [], from: 'users', relation, span };
  }

  /** A list of the body is that of the record that the write makes. */
  #inBody(node: CheckedCompare, given: InField, list: RequestOperand): Formula {
    const { asked } = this.#of;
    const term = asked.bodyList(list);
    const field = asked.bodyField(list);
    if (term === undefined || field === undefined) return this.#of.opaque(node, given.names, given.question);
    const from = asked.subject.written!.collection;
    const relation = { kind: 'elements', name: field.name, collection: '', field } as const;
    const path = { scope: { kind: 'next' }, collection: from, steps: [], from, relation, span: list.span } as const;
    return this.#of.ifPresent(term, this.#inField(node, path, given), constantly(given.question.isOpposite));
  }

  /** `list contains element`: some element of the list equals it. */
  #inField(node: CheckedCompare, path: ElementsPath, { names, question, element }: InField): Formula {
    const { span } = node;
    const left: ColumnOperand = {
      kind: 'column',
      scope: { kind: 'variable', name: ELEMENT },
      collection: '',
      steps: [],
      column: { kind: 'element' },
      type: elementOf(path.relation.field.type)!,
      nullable: false,
      span,
    };
    const condition = equal(left, element, span);
    const quantifier = OPERATORS[node.op].negative === true ? 'none' : 'any';
    return this.#of.formula(
      { kind: 'quantified', quantifier, path, variable: ELEMENT, condition, span },
      names,
      question,
    );
  }

  /** An absent side makes the comparison unknown. */
  #reach(operand: ValueOperand, { node, names, question }: Reaching, then: (side: TermSide) => Formula): Formula {
    const opaque = (): Formula => this.#of.opaque(node, names, question);
    switch (operand.kind) {
      case 'literal':
        return then({
          value: operand.value as Scalar,
          exact: operand.exact as string | undefined,
          type: operand.type,
        });
      case 'now':
        return then({ value: movedNow(this.#of.asked.standing.now, operand), exact: undefined, type: operand.type });
      case 'column':
        return this.#of.column(operand, names, { then, absent: constantly(question.isOpposite), opaque });
      case 'request': {
        const term = this.#of.asked.term(operand);
        return term === undefined ? opaque() : then(term);
      }
    }
  }

  #compare(node: CheckedCompare, [left, right]: readonly [TermSide, TermSide], question: Proposition): Formula {
    const asking = { op: node.op, holds: question.truth !== question.isOpposite, type: node.left.type };
    if (!(left instanceof Term) && !(right instanceof Term))
      return constantly(holdsOf(node)(left.value, right.value) === asking.holds);
    const test = this.#test(asking, left, right);
    const sides = [left, right].filter((side) => side instanceof Term);
    if (!question.isOpposite) return this.#needle(asking, right, test);
    const absent = sides.filter((side) => rootOf(side).isPresent !== true).map((side) => this.#of.rows.absence(side));
    return someOf([...absent, ...this.#blank(asking, right), test]);
  }

  /** A needle of which folding leaves nothing is absent. */
  #needle({ op }: AskedComparison, right: TermSide, test: Formula): Formula {
    if (OPERATORS[op].folds !== true || !(right instanceof Term)) return test;
    return all([test, this.#isBlank(right, false)]);
  }

  #blank({ op }: AskedComparison, right: TermSide): readonly Formula[] {
    return OPERATORS[op].folds === true && right instanceof Term ? [this.#isBlank(right, true)] : [];
  }

  #isBlank(term: Term, holds: boolean): Formula {
    return atom(() => this.#of.rows.terms.part(term, { op: BLANK, holds, needle: '' }));
  }

  // -------------------------------------------------------------- two sides

  /** Both sides are present, and the operator holds as asked. */
  #test(asking: AskedComparison, left: TermSide, right: TermSide): Formula {
    if (left instanceof Term && right instanceof Term) return this.#ofTerms(asking, left, right);
    if (left instanceof Term) return this.#ofValue(asking, left, right as Known);
    const { mirror } = OPERATORS[asking.op];
    if (mirror !== undefined) return this.#ofValue({ ...asking, op: mirror }, right as Term, left);
    const parts = partsOfText(asking.op, left.value);
    if (parts !== undefined && isText((right as Term).domain.type))
      return this.#isPart(right as Term, parts, asking.holds);
    const text = this.#constant('string', left.value);
    return text === undefined ? CUT : this.#ofTerms(asking, text, right as Term);
  }

  /** A text is among the parts of a text that the policy names, or it is none of them. */
  #isPart(text: Term, parts: readonly string[], holds: boolean): Formula {
    const { terms } = this.#of.rows;
    const test = holds
      ? () => terms.isOneOf(text, parts)
      : () => terms.present(text) && parts.every((part) => terms.isNot(text, part));
    return atom(test);
  }

  #constant(type: ValueType, value: Scalar): Term | undefined {
    const { constants, trail } = this.#of.rows;
    const key = `${JSON.stringify(type)} ${JSON.stringify(value)}`;
    const known = constants.get(key);
    if (known !== undefined) return known;
    const term = this.#of.rows.value(type, false);
    if (term === undefined) return undefined;
    term.value = value;
    trail.put(constants, key, term);
    return term;
  }

  #ofTerms({ op, holds }: AskedComparison, left: Term, right: Term): Formula {
    const { terms } = this.#of.rows;
    const { family, negative, direction, strict } = OPERATORS[op];
    const areIds = [left, right].map(({ collection }) => collection !== undefined);
    // The text of an id that is not known has an order and parts, too.
    if (family === 'place' || ((family === 'text' || direction !== undefined) && areIds.includes(true))) return CUT;
    if (family === 'text') {
      if (rootOf(left) === rootOf(right)) return holds ? all([this.#of.rows.presence(left)]) : NO;
      return atom(() => terms.part(left, { op, holds, needle: right }));
    }
    if (direction === undefined) {
      const isSame = holds !== (negative === true);
      if (left.collection !== undefined && right.collection === undefined) return this.#isId(right, left, isSame);
      if (right.collection !== undefined && left.collection === undefined) return this.#isId(left, right, isSame);
      const test = (same: boolean): boolean => (same ? terms.same(left, right) : terms.differ(left, right));
      return atom(
        () => test(isSame),
        () => !arePresent(left, right) || test(!isSame),
      );
    }
    const isUp = (direction === 'up') === holds;
    const isStrict = holds ? strict === true : strict !== true;
    const [low, high] = isUp ? [right, left] : [left, right];
    return atom(() => terms.inOrder(low, high, isStrict));
  }

  /** A text beside an id. */
  #isId(text: Term, id: Term, isSame: boolean): Formula {
    const { rows } = this.#of;
    if ((text.domain.kind === 'number') !== isNumeric(rows.idType(id.collection!))) return CUT;
    return atom(() => {
      if (!rows.terms.present(id) || !rows.terms.present(text)) return false;
      return isSame ? rows.terms.isId(text, rows.rowOf(id)) : rows.terms.isNoId(text, rows.rowOf(id));
    });
  }

  #ofValue({ op, holds }: AskedComparison, term: Term, known: Known): Formula {
    const { rows } = this.#of;
    const { complement } = OPERATORS[op];
    const { type } = term.domain;
    if (complement === undefined) {
      const needle = String(known.value);
      return atom(() => rows.terms.part(term, { op, holds, needle }));
    }
    const wanted = holds ? op : complement;
    if (isTo(type)) return this.#ofId(wanted, term, known);
    const grid = gridOf(type);
    const test =
      grid !== undefined
        ? gridTest(grid, wanted, known.exact ?? String(known.value))
        : isNumeric(type)
          ? numberTest(type, wanted, { value: Number(known.value), exact: known.exact })
          : { op: wanted, value: known.value };
    if (typeof test === 'boolean') return test ? rows.presence(term) : NO;
    return this.#against(term, test.op, test.value);
  }

  #against(term: Term, op: CompareOp, value: Scalar): Formula {
    const { terms } = this.#of.rows;
    const { direction, strict = false } = OPERATORS[op];
    if (direction === 'up') return atom(() => terms.atLeast(term, { value, strict }));
    if (direction === 'down') return atom(() => terms.atMost(term, { value, strict }));
    const is = (): boolean => terms.is(term, value);
    const isNot = (): boolean => terms.isNot(term, value);
    const deny = (opposite: () => boolean) => () => !arePresent(term) || opposite();
    return isMember(OPERATORS[op]) ? atom(is, deny(isNot)) : atom(isNot, deny(is));
  }

  #ofId(op: CompareOp, term: Term, { value, exact = String(value) }: Known): Formula {
    const { rows } = this.#of;
    if (OPERATORS[op].direction !== undefined) return CUT;
    if (!isIdText(rows.idType(term.collection!), exact)) return isMember(OPERATORS[op]) ? NO : rows.presence(term);
    const id = (): Term => rows.named(term.collection!, exact).id;
    const same = (): boolean => rows.terms.same(term, id());
    const differ = (): boolean => rows.terms.differ(term, id());
    return isMember(OPERATORS[op]) ? atom(same) : atom(differ);
  }

  // -------------------------------------------------------------- elements of lists

  #element({ node, element, list }: ElementOf, names: Names, question: Proposition): Formula {
    const isNegative = OPERATORS[node.op].negative === true;
    const asked = { ...question, truth: question.truth !== isNegative };
    const isRoles = list.kind === 'request' && list.source === 'auth';
    if (list.kind === 'literal' && (list.value as readonly Scalar[]).length === 0)
      return constantly(asked.truth === asked.isOpposite);
    const then = (side: TermSide): Formula => {
      if (isRoles) return this.#role(side, asked);
      if (list.kind === 'literal') return this.#inLiteral({ node, side, list }, asked);
      return this.#inRequest(side, this.#of.asked.list(list), asked);
    };
    const found = this.#reach(element, { node, names, question: asked }, then);
    if (!isRoles || asked.truth || element.kind !== 'column') return found;
    // No roles hold not even what is absent.
    return asked.isOpposite ? all([found, this.#someRole()]) : someOf([found, this.#noRole()]);
  }

  #noRole(): Formula {
    const { asked } = this.#of;
    return all(asked.roleNames.map((name) => asked.role(name, false)));
  }

  #someRole(): Formula {
    const { asked } = this.#of;
    return someOf(asked.roleNames.map((name) => asked.role(name, true)));
  }

  #role(side: TermSide, { truth, isOpposite }: Proposition): Formula {
    const { asked, rows } = this.#of;
    const isHeld = truth !== isOpposite;
    if (!(side instanceof Term)) return asked.role(String(side.value), isHeld);
    if (side.collection !== undefined) return this.#of.ifPresent(side, constantly(!isHeld), constantly(isOpposite));
    const is = (name: string): Formula => atom(() => rows.terms.is(side, name));
    const isNot = (name: string): Formula => atom(() => rows.terms.isNot(side, name));
    const test = isHeld
      ? someOf(asked.roleNames.map((name) => all([is(name), asked.role(name, true)])))
      : all([rows.presence(side), ...asked.roleNames.map((name) => someOf([isNot(name), asked.role(name, false)]))]);
    const absent = !truth && !isOpposite ? this.#noRole() : NO;
    if (!isOpposite) return someOf([test, absent]);
    const left = someOf([rows.absence(side), test]);
    return truth ? left : all([left, this.#someRole()]);
  }

  #inLiteral({ node, side, list }: InLiteral, { truth, isOpposite }: Proposition): Formula {
    const wants = truth !== isOpposite;
    if (!(side instanceof Term)) {
      const holds = holdsOf(node)(
        isList(node.left) ? literalElements(list) : side.value,
        isList(node.left) ? side.value : literalElements(list),
      );
      return constantly((holds !== (OPERATORS[node.op].negative === true)) === wants);
    }
    const test = this.#isAmong(side, this.#elements(side, list), wants);
    return isOpposite && rootOf(side).isPresent !== true ? someOf([this.#of.rows.absence(side), test]) : test;
  }

  /** The elements that a value of the type can equal. */
  #elements({ domain: { type } }: Term, { value, exact }: LiteralOperand): readonly Scalar[] {
    if (isTo(type))
      return (value as readonly Scalar[]).filter((element, i) => isIdText(type, exact?.[i] || String(element)));
    const grid = gridOf(type);
    return (value as readonly Scalar[]).filter((element, i) => {
      if (grid !== undefined) return isOnGrid(grid, String(element));
      return typeof element !== 'number' || canEqual(type, { value: element, exact: exact?.[i] || undefined });
    });
  }

  #isAmong(term: Term, values: readonly Scalar[], isIn: boolean): Formula {
    const { rows } = this.#of;
    if (term.collection !== undefined) {
      const tests = values.map((value) =>
        atom(() => {
          const { id } = rows.named(term.collection!, String(value));
          return isIn ? rows.terms.same(term, id) : rows.terms.differ(term, id);
        }),
      );
      return isIn ? someOf(tests) : all([rows.presence(term), ...tests]);
    }
    if (isIn) return atom(() => rows.terms.isOneOf(term, values));
    return all([rows.presence(term), ...values.map((value) => atom(() => rows.terms.isNot(term, value)))]);
  }

  // -------------------------------------------------------------- lists of the query

  listPresence(operand: RequestOperand, isPresent: boolean): Formula {
    if (operand.source === 'auth') return constantly(isPresent);
    return this.#fact(this.#of.asked.list(operand), 'present', isPresent);
  }

  #fact({ key }: ListVariable, what: 'present' | 'whole', holds: boolean): Formula {
    const name = `list ${what} ${key}`;
    return atom(
      () => this.#of.rows.fact(name, holds),
      () => this.#of.rows.fact(name, !holds),
    );
  }

  #inRequest(side: TermSide, list: ListVariable, { truth, isOpposite }: Proposition): Formula {
    const { asked, rows } = this.#of;
    const { type } = list.operand;
    const isMember = truth !== isOpposite;
    const element = this.#elementTerm(side, type);
    if (element === undefined || rows.value(type, true) === undefined) return CUT;
    const member = element === 'none' ? constantly(!isMember) : atom(() => asked.holds(list, element, isMember));
    const isPresent = this.#fact(list, 'present', true);
    const test = truth ? all([isPresent, member]) : all([isPresent, this.#fact(list, 'whole', true), member]);
    if (!isOpposite) return test;
    const isOpen = element !== 'none' && rootOf(element).isPresent !== true;
    const absent = isOpen ? [rows.absence(element)] : [];
    const isPartial = truth ? [] : [this.#fact(list, 'whole', false)];
    return someOf([...absent, this.#fact(list, 'present', false), ...isPartial, member]);
  }

  /** `none`: a numeral that no value of the type equals. */
  #elementTerm(side: TermSide, type: ValueType): Term | 'none' | undefined {
    if (side instanceof Term) return isComparableTerm(side, type) ? side : undefined;
    const numeral = side.exact ?? String(side.value);
    if (isTo(type)) return isIdText(type, numeral) ? this.#of.rows.named(type.id, numeral).id : 'none';
    const grid = gridOf(type);
    if (grid !== undefined) return isOnGrid(grid, numeral) ? this.#constant(type, numeral) : 'none';
    if (isNumeric(type) && !canEqual(type, { value: Number(side.value), exact: side.exact })) return 'none';
    return this.#constant(type, side.value);
  }

  // -------------------------------------------------------------- counts

  #count({ node, op, count, other }: CountTest, names: Names, question: Proposition): Formula {
    const opaque = (): Formula => this.#of.opaque(node, names, question);
    const wants = question.truth !== question.isOpposite;
    const absent = constantly(question.isOpposite);
    const { path } = count;
    const isChain = path.relation.kind === 'ancestors';
    if (isList(other) && other.kind !== 'literal') return opaque();
    return this.#of.owner(path, names, {
      absent,
      then: (owner) => {
        const within = (test: Formula): Formula =>
          isChain ? this.#of.withinChain({ path, owner }, test, question) : test;
        const is = (test: CompareOp, value: number): Formula => {
          const counted = this.#of.counted(count, { path, owner }, names);
          return countFormula(counted, OPERATORS[test], value);
        };
        if (other.kind === 'literal') return within(this.#countIs(op, { other, wants, is }));
        const counted = this.#of.counted(count, { path, owner }, names);
        const term = this.#countTerm(this.#of.keyOf(count, names), counted);
        return this.#reach(other as ValueOperand, { node, names, question }, (side) =>
          within(this.#compare(node, node.left === count ? [term, side] : [side, term], question)),
        );
      },
    });
  }

  /** A count as a value, which is one for one count of one record. The search looks at few elements only. */
  #countTerm(key: string, counted: CountedQuestion): Term {
    const { rows } = this.#of;
    const known = rows.counts.get(key);
    if (known !== undefined) return known;
    const term = rows.value('int', false)!;
    term.low = { value: 0, strict: false };
    rows.trail.put(rows.counts, key, term);
    const few = COUNTS.map((value) =>
      all([atom(() => rows.terms.is(term, value)), counted.atLeast(value), counted.fewerThan(value + 1)]),
    );
    const many = all([atom(() => rows.terms.atLeast(term, { value: COUNTS.length, strict: false })), CUT]);
    rows.trail.push(rows.axioms, someOf([...few, many]));
    return term;
  }

  #countIs(op: CompareOp, { other, wants, is }: CountIs): Formula {
    const operator = OPERATORS[op];
    if (Array.isArray(other.value)) {
      const values = other.value.filter((value, i) =>
        canEqual('int', { value: Number(value), exact: other.exact?.[i] || undefined }),
      );
      const isIn = wants !== (operator.negative === true);
      const tests = values.map((value) => is(equalityOf(isIn), Number(value)));
      return isIn ? someOf(tests) : all(tests);
    }
    const wanted = wants ? op : operator.complement!;
    const test = numberTest('int', wanted, { value: Number(other.value), exact: other.exact as string | undefined });
    return typeof test === 'boolean' ? constantly(test) : is(test.op, test.value);
  }
}

/** The texts that the operator finds in a short one. Undefined: too many, or several spellings of each. */
function partsOfText(op: CompareOp, value: Scalar): readonly string[] | undefined {
  const { holds, folds, family } = OPERATORS[op];
  const points = [...String(value)];
  if (family !== 'text' || folds === true || points.length > MOST_POINTS) return undefined;
  const parts = points.flatMap((_, i) => points.slice(i).map((_, j) => points.slice(i, i + j + 1).join('')));
  return [...new Set(['', ...parts])].filter((part) => holds(value, part));
}
const MOST_POINTS = 16;

/** The opposite of a comparison is its complement only for present sides. */
const arePresent = (...terms: readonly Term[]): boolean => terms.every((term) => rootOf(term).isPresent === true);

/** Values of the two types can be equal without being read as the other. */
function isComparableTerm({ domain, collection }: Term, type: ValueType): boolean {
  if (isTo(type)) return collection === type.id;
  return collection === undefined && (domain.type === type || (domain.kind === 'number' && isNumeric(type)));
}

function countFormula(counted: CountedQuestion, { direction, strict, negative }: Operator, value: number): Formula {
  if (direction === 'up') return counted.atLeast(strict ? value + 1 : value);
  if (direction === 'down') return counted.fewerThan(strict ? value : value + 1);
  const [below, above] = [counted.fewerThan(value), counted.atLeast(value + 1)];
  if (negative) return someOf([below, above]);
  return all([counted.atLeast(value), counted.fewerThan(value + 1)]);
}

interface Reaching {
  readonly node: CheckedCompare;
  readonly names: Names;
  readonly question: Proposition;
}
interface InField {
  readonly names: Names;
  readonly question: Proposition;
  readonly element: CheckedOperand;
}
interface ElementOf {
  readonly node: CheckedCompare;
  readonly element: ValueOperand;
  readonly list: LiteralOperand | RequestOperand;
}
interface InLiteral {
  readonly node: CheckedCompare;
  readonly side: TermSide;
  readonly list: LiteralOperand;
}
interface CountTest {
  readonly node: CheckedCompare;
  readonly op: CompareOp;
  readonly count: CountOperand;
  readonly other: CheckedOperand;
}
interface CountIs {
  readonly other: LiteralOperand;
  readonly wants: boolean;
  readonly is: (op: CompareOp, value: number) => Formula;
}
