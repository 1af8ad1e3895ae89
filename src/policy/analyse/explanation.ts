/**
 * Explains the decision of a policy on one record: the value of every clause, and what was null in
 * an unknown one. Evaluates the checked tree with three values by itself, so that the
 * explanation does not depend on the lowering that it explains.
 */
import type { Span } from '../../../grammar/syntax.ts';
import { type AncestorRows, ancestorsOf, elementRows } from '../emit/decision.ts';
import { partOf } from '../emit/json-parts.ts';
import { isBlankNeedle } from '../fold.ts';
import { holdsOf, listGiven, literalElements } from '../lower/specialise.ts';
import { OPERATORS } from '../operators.ts';
import { factReaderOf } from '../request/request-facts.ts';
import { elementOf, scalarOf } from '../scalar-types.ts';
import { listElements } from '../scalars/list-values.ts';
import {
  type Checked,
  type CheckedCompare,
  type CheckedOperand,
  type CheckedQuantified,
  type ColumnOperand,
  type CountOperand,
  ELEMENT_VALUE,
  type Member,
  MOST_ANCESTORS,
  type PartType,
  type Policy,
  type PolicyRequest,
  type Related,
  type RequestOperand,
  type Row,
  type RowScope,
  type ToManyPath,
  type Verdict,
} from '../types.ts';
import { movedNow, own, type Scalar } from '../values.ts';
import { memberName } from '../visit.ts';
import { UNLIMITED_WORK, type WorkBudget } from '../work-budget.ts';

/** The steps of a clause: it is made, and shown to its reader. */
const CLAUSE_STEPS = 16;

type KleeneValue = boolean | undefined;
/** A part of a policy and its value. `absent` names what was null if the value is unknown. */
export interface Clause {
  readonly text: string;
  readonly value: KleeneValue;
  readonly absent?: string;
  /** The element of a to-many relation that this clause was evaluated for. */
  readonly element?: string;
  /** `not` and `none`: the value is the opposite of its parts. */
  readonly inverts?: true;
  /** The first element with the value decided it. */
  readonly decidedByOne?: true;
  /** The offset in the source text; not given for the body of a named condition. */
  readonly offset?: number;
  /** A comparison: the values of its sides; undefined where there is none. */
  readonly sides?: { readonly left: unknown; readonly right: unknown };
  readonly parts: readonly Clause[];
}
export interface Situation extends ClauseSituation {
  readonly policy: Policy;
}
export interface ClauseSituation {
  readonly policy: Pick<Policy, 'checked' | 'text' | 'source'>;
  readonly request: PolicyRequest;
  readonly record: Row;
  /**
   * `record` is the result of a create or an update, and holds the ids of its partners and members
   * itself.
   */
  readonly isWritten?: boolean;
  /** The result of an update, for a rule that names `@next`. */
  readonly next?: Row;
  /** The database before the write. */
  readonly related: Related;
  /** Sees the value of every part that is evaluated, once for each element. */
  readonly onValue?: ((node: Checked, value: KleeneValue) => void) | undefined;
  /** Ends the explanation of what a caller states, by `TooMuchWork`. Default: it has no end. */
  readonly work?: WorkBudget;
}
export interface Explanation {
  readonly allowed: boolean;
  readonly sentence: string;
  readonly clause: Clause;
  /** The decision by the request alone, before any record is read. */
  readonly residual: Verdict;
  /** The condition over stored records, if the policy has one. */
  readonly sql?: { readonly text: string; readonly values: readonly unknown[] };
}

export function explain(situation: Situation): Explanation {
  const { policy, request, isWritten = false } = situation;
  const clause = clauseOf(situation);
  const residual = policy.specialise(request);
  const sql = policy.namesNext || isWritten ? undefined : residual.where('record');
  return {
    allowed: clause.value === true,
    sentence: sentenceOf(clause),
    clause,
    residual: residual.verdict,
    ...(sql && { sql: { text: sql.text, values: sql.values } }),
  };
}

/** The value of every clause, of a rule or of a filter. */
export function clauseOf(situation: ClauseSituation): Clause {
  return new Evaluation(situation).clause(situation.policy.checked, new Map());
}

/** The record whose id a request holds, if it holds one. */
export function requestedId(
  operand: RequestOperand,
  request: PolicyRequest,
): { readonly collection: string; readonly id: string } | undefined {
  const { type } = operand;
  const raw = requestValue(operand, request);
  const id = typeof type === 'object' ? scalarOf(type).readJson(raw) : undefined;
  return typeof type === 'object' && id !== undefined ? { collection: type.id, id: String(id) } : undefined;
}

/** Returns the request's value as sent. */
function requestValue(operand: RequestOperand, request: PolicyRequest): unknown {
  const { source, name } = operand;
  if (source === 'fact') return factReaderOf(operand)(request);
  const { auth, query, data, params } = request;
  const holder: Row | null | undefined = { auth, query, data, param: params }[source];
  return holder == null ? undefined : own(holder, name);
}

// ---------------------------------------------------------------- the sentence

function sentenceOf(clause: Clause): string {
  const deciding = decidingOf(clause);
  const verb = clause.value === true ? 'allowed' : 'denied';
  const where = deciding.element === undefined ? '' : ` for ${deciding.element}`;
  const reason = deciding.absent === undefined ? '' : `: ${deciding.absent}`;
  return `${verb} because \`${deciding.text}\` is ${valueWord(deciding.value)}${where}${reason}`;
}

const valueWord = (value: KleeneValue): string => (value === undefined ? 'unknown' : String(value));

/** The smallest clause that alone decided the whole; the first of several elements. */
export function decidingOf(clause: Clause): Clause {
  const wanted = clause.inverts ? opposite(clause.value) : clause.value;
  const [only, ...others] = clause.parts.filter((part) => part.value === wanted);
  const isEnough = others.length === 0 || clause.decidedByOne === true;
  if (only === undefined || !isEnough) return clause;
  const deciding = decidingOf(only);
  const element = deciding.element ?? only.element;
  return element === undefined ? deciding : { ...deciding, element };
}

const opposite = (value: KleeneValue): KleeneValue => (value === undefined ? undefined : !value);

// ---------------------------------------------------------------- three values

interface BoundRow {
  readonly row: Row;
  /** The row that a write makes. Rows reached from it are stored. */
  readonly isWritten: boolean;
}
type BoundRows = ReadonlyMap<string, BoundRow>;
/** A value, or why there is none. */
type FoundValue = { readonly value: Scalar | readonly (Scalar | undefined)[] } | { readonly absent: string };
type FoundRow = BoundRow | { readonly absent: string };

class Evaluation {
  readonly #situation: ClauseSituation;
  readonly #work: WorkBudget;

  constructor(situation: ClauseSituation) {
    this.#situation = situation;
    this.#work = situation.work ?? UNLIMITED_WORK;
  }

  clause(node: Checked, variables: BoundRows): Clause {
    this.#work.take(CLAUSE_STEPS);
    const { start, source: body } = node.span;
    const clause = this.#clause(node, variables);
    this.#situation.onValue?.(node, clause.value);
    return body === undefined ? { ...clause, offset: start } : clause;
  }

  #clause(node: Checked, variables: BoundRows): Clause {
    const text = this.#text(node.span);
    this.#work.read(text);
    switch (node.kind) {
      case 'const':
        return { text, value: node.value, parts: [] };
      case 'not': {
        const part = this.clause(node.item, variables);
        return { text, value: opposite(part.value), inverts: true, parts: [part] };
      }
      case 'and':
      case 'or': {
        const parts = node.items.map((item) => this.clause(item, variables));
        return { text, value: kleene(node.kind, parts), parts };
      }
      case 'is null': {
        const found = this.#operand(node.operand, variables);
        return { text, value: 'absent' in found === !node.negated, parts: [] };
      }
      case 'compare':
        return { text, ...this.#compare(node, variables), parts: [] };
      case 'quantified':
        return { text, ...this.#quantified(node, variables) };
      case 'changed': {
        const isChanged = node.members.some((member) => this.#isChanged(member, node.collection));
        return { text, value: isChanged !== node.unchanged, parts: [] };
      }
    }
  }

  #text({ start, end, source: body }: Span): string {
    const { source, text } = this.#situation.policy;
    if (body !== undefined) return body.slice(start, end);
    return start === 0 && end === source.length ? text : source.slice(start, end);
  }

  #quantified(
    { path, quantifier, variable, condition }: CheckedQuantified,
    variables: BoundRows,
  ): Omit<Clause, 'text'> {
    const at = this.#walk(path, variables);
    if ('absent' in at) return { value: undefined, absent: at.absent, parts: [] };
    if (isNullList(at, path)) return { value: undefined, absent: nullOf(this.#text(path.span)), parts: [] };
    const { rows, next } = this.#elements(at, path);
    if (path.relation.kind === 'ancestors' && rows.length === 0) return { value: undefined, absent: NOBODY, parts: [] };
    const elements = rows.map((row) => ({
      ...this.clause(condition, new Map(variables).set(variable, { row, isWritten: false })),
      element: `${path.relation.name} ${own(row, 'id') ?? JSON.stringify(own(row, ELEMENT_VALUE))}`,
    }));
    const parts = next ? [...elements, unknownBeyond(this.#text(path.span))] : elements;
    const kind = quantifier === 'all' ? 'and' : 'or';
    const value = kleene(kind, parts);
    const asked = value === (kind === 'or') ? { parts, decidedByOne: true as const } : { parts };
    return quantifier === 'none' ? { value: opposite(value), inverts: true, ...asked } : { value, ...asked };
  }

  #isChanged(member: Member, from: string): boolean {
    const { record, next = record, related } = this.#situation;
    const name = memberName(member);
    const after = own(next, name) ?? null;
    if (member.kind === 'field' || member.relation.kind === 'belongs_to') return (own(record, name) ?? null) !== after;
    const before = related.many(from, name, idOfRow(record)).map((row) => own(row, 'id'));
    const held: readonly unknown[] = after === null ? [] : Array.isArray(after) ? after : [after];
    return before.length !== held.length || !before.every((id) => held.includes(id));
  }

  #elements({ row, isWritten }: BoundRow, { from, relation }: ToManyPath): AncestorRows {
    const { related } = this.#situation;
    if (relation.kind === 'ancestors') return ancestorsOf(relation, related, own(row, 'id'));
    if (relation.kind === 'elements') {
      const list = String(own(row, relation.field.name));
      this.#work.parse(list);
      return { rows: elementRows(list) };
    }
    if (!isWritten || relation.kind === 'has_many') return { rows: related.many(from, relation.name, idOfRow(row)) };
    const members = (own(row, relation.name) ?? []) as readonly string[];
    const rows = members.map((id) => related.one(relation.collection, id)).filter((member) => member !== undefined);
    return { rows };
  }

  // -------------------------------------------------------------- values

  #compare(node: CheckedCompare, variables: BoundRows): Omit<Clause, 'text' | 'parts'> {
    const left = this.#operand(node.left, variables);
    const right = this.#needle(node, this.#operand(node.right, variables));
    for (const side of [left, right]) if ('value' in side) this.#work.read(side.value);
    if (OPERATORS[node.op].folds === true && 'value' in left) this.#work.fold(left.value);
    if (elementOf(node.left.type) !== undefined && 'value' in left) this.#work.parse(left.value);
    return {
      ...this.#compareValues(node, left, right),
      sides: { left: shownValue(node.left, left), right: shownValue(node.right, right) },
    };
  }

  /** A needle of which folding leaves nothing is absent. */
  #needle({ op, right }: CheckedCompare, found: FoundValue): FoundValue {
    if (OPERATORS[op].folds !== true || 'absent' in found || !isBlankNeedle(String(found.value))) return found;
    return { absent: `\`${this.#text(right.span)}\` has nothing but accents and other marks` };
  }

  #compareValues(node: CheckedCompare, left: FoundValue, right: FoundValue): Pick<Clause, 'value' | 'absent'> {
    const list = [left, right].find((found) => 'value' in found && Array.isArray(found.value)) as
      | { readonly value: readonly unknown[] }
      | undefined;
    const member = OPERATORS[node.op].negative !== true;
    if (elementOf(node.left.type) && 'value' in left && listElements(String(left.value)).length === 0)
      return { value: !member };
    if (list?.value.length === 0) return { value: !member };
    if ('absent' in left) return { value: undefined, absent: left.absent };
    if ('absent' in right) return { value: undefined, absent: right.absent };
    if (list === undefined) return { value: holdsOf(node)(left.value as Scalar, right.value as Scalar) };
    const literal = list === left ? node.left : node.right;
    if (isElement(node, left.value, right.value)) return { value: member };
    if (!list.value.includes(undefined)) return { value: !member };
    return { value: undefined, absent: `an element of \`${this.#text(literal.span)}\` cannot be read` };
  }

  #operand(operand: CheckedOperand, variables: BoundRows): FoundValue {
    switch (operand.kind) {
      case 'literal':
        return { value: operand.value };
      case 'now':
        return { value: movedNow(this.#situation.request.now, operand) };
      case 'request':
        return this.#requestValue(operand);
      case 'column':
        return this.#columnValue(operand, variables);
      case 'count':
        return this.#count(operand, variables);
    }
  }

  #count({ path, variable, condition }: CountOperand, variables: BoundRows): FoundValue {
    const at = this.#walk({ scope: path.scope, steps: path.steps }, variables);
    if ('absent' in at) return at;
    const meets = (row: Row): boolean =>
      this.clause(condition, new Map(variables).set(variable, { row, isWritten: false })).value === true;
    if (isNullList(at, path)) return { absent: nullOf(this.#text(path.span)) };
    const { rows, next } = this.#elements(at, path);
    if (path.relation.kind === 'ancestors' && rows.length === 0) return { absent: NOBODY };
    if (next) return { absent: beyondOf(this.#text(path.span)) };
    return { value: rows.filter(meets).length };
  }

  #columnValue(operand: ColumnOperand, variables: BoundRows): FoundValue {
    const at = this.#walk(operand, variables);
    if ('absent' in at) return at;
    const { column } = operand;
    if (column.kind === 'field' && column.field.part) this.#work.json(own(at.row, column.field.part.member));
    const value = storedValue(operand, at.row) ?? undefined;
    return value === undefined ? { absent: nullOf(this.#text(operand.span)) } : { value: value as Scalar };
  }

  #walk({ scope, steps }: Pick<ColumnOperand, 'scope' | 'steps'>, variables: BoundRows): FoundRow {
    let at = this.#root(scope, variables);
    for (const { from, relation } of steps) {
      if ('absent' in at) return at;
      const { row, isWritten }: BoundRow = at;
      const { related } = this.#situation;
      const isHeld = relation.kind === 'belongs_to' || isWritten;
      const key = own(row, isHeld ? relation.name : 'id') as string | null | undefined;
      const found = isHeld
        ? related.one(relation.collection, key ?? '')
        : related.many(from, relation.name, key ?? '')[0];
      at = found === undefined ? { absent: `there is no \`${relation.name}\`` } : { row: found, isWritten: false };
    }
    return at;
  }

  #root(scope: RowScope, variables: BoundRows): FoundRow {
    const { record, isWritten = false, next = record } = this.#situation;
    switch (scope.kind) {
      case 'record':
        return { row: record, isWritten };
      case 'next':
        return { row: next, isWritten: true };
      case 'variable':
        return variables.get(scope.name) ?? { absent: `there is no \`${scope.name}\`` };
      case 'request':
        return this.#requestedRow(scope.operand);
    }
  }

  /** The record whose id the request holds; rows that reference it are found by the id alone. */
  #requestedRow(operand: RequestOperand): FoundRow {
    const found = this.#requestValue(operand);
    if ('absent' in found) return found;
    const { kind = 'user' } = this.#situation.request;
    if (operand.source === 'auth' && operand.name === 'id' && kind !== 'user')
      return { absent: `the caller is a ${kind}, which has no record` };
    const { id: collection } = operand.type as { readonly id: string };
    const row = this.#situation.related.one(collection, String(found.value));
    return { row: row ?? { id: found.value }, isWritten: false };
  }

  #requestValue(operand: RequestOperand): FoundValue {
    const { source, type, list, span } = operand;
    const raw = requestValue(operand, this.#situation.request);
    const shown = `\`${this.#text(span)}\``;
    if (raw === undefined || raw === null) return { absent: `${shown} was not sent` };
    const scalar = scalarOf(type);
    const readJson = (source === 'auth' && scalar.readStored) || scalar.readJson;
    const read = (value: unknown): Scalar | undefined =>
      source === 'query' ? scalar.readText(String(value)) : readJson(value);
    if (list) {
      const given = listGiven(operand, raw);
      if (!Array.isArray(given)) return { absent: `${shown} is not a list` };
      const elements = given.map(read);
      if (elements.length > 0 && elements.every((element) => element === undefined))
        return { absent: `no element of ${shown} can be read` };
      return { value: elements };
    }
    if (Array.isArray(raw)) return { absent: `${shown} was sent more than once` };
    const value = read(raw);
    const kind = typeof type === 'object' ? 'id' : type;
    return value === undefined ? { absent: `${shown} cannot be read as ${kind}` } : { value };
  }
}

/** The value for people: a list by its elements. */
function shownValue({ type }: CheckedOperand, found: FoundValue): unknown {
  if (!('value' in found)) return undefined;
  return elementOf(type) && typeof found.value === 'string' ? listElements(found.value) : found.value;
}

const idOfRow = (row: Row): string => String(own(row, 'id'));

const nullOf = (text: string): string => `\`${text}\` is null`;
function storedValue({ column, type }: ColumnOperand, row: Row): unknown {
  const part = column.kind === 'field' ? column.field.part : undefined;
  if (part !== undefined) return partOf(own(row, part.member), part, type as PartType);
  return own(row, column.kind === 'id' ? 'id' : memberName(column));
}

const isNullList = ({ row }: BoundRow, { relation }: ToManyPath): boolean =>
  relation.kind === 'elements' && own(row, relation.field.name) == null;

const NOBODY = 'there is no such record';
/** The ancestors beyond the limit count as one more element, for which the condition is unknown. */
const unknownBeyond = (text: string): Clause => ({ text, value: undefined, absent: beyondOf(text), parts: [] });
const beyondOf = (text: string): string => `\`${text}\` goes on beyond ${MOST_ANCESTORS} records`;

function kleene(kind: 'and' | 'or', parts: readonly Clause[]): KleeneValue {
  const settling = kind === 'or';
  if (parts.some(({ value }) => value === settling)) return settling;
  return parts.some(({ value }) => value === undefined) ? undefined : !settling;
}

type SideValue = Scalar | readonly unknown[];

function isElement(node: CheckedCompare, left: SideValue, right: SideValue): boolean {
  const { negative, complement } = OPERATORS[node.op];
  const op = negative && complement ? complement : node.op;
  const elements = (operand: CheckedOperand, value: SideValue) =>
    (operand.kind === 'literal' && operand.list ? literalElements(operand) : value) as Scalar | readonly Scalar[];
  return holdsOf({ ...node, op })(elements(node.left, left), elements(node.right, right));
}
