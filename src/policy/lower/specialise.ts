/**
 * Partial evaluation. `planOf` finds, once for a policy, the parts that the request alone decides,
 * and the request values that are compared with a column. `bind` reads them for one request and
 * returns their outcomes as a signature: two requests of one signature leave the same residual,
 * with other values bound.
 */
import { invariant } from '../../invariant.ts';
import { successorOf } from '../collation.ts';
import { isBlankNeedle } from '../fold.ts';
import { OPERATORS } from '../operators.ts';
import { factReaderOf } from '../request/request-facts.ts';
import { readerOfOperand, type ScalarKind } from '../scalar-types.ts';
import { listElements } from '../scalars/list-values.ts';
import { canEqual, compareNumerals, holdsForNumber, holdsForNumerals } from '../scalars/numerals.ts';
import type {
  Checked,
  CheckedChanged,
  CheckedCompare,
  CheckedOperand,
  CheckedQuantified,
  ColumnOperand,
  CountOperand,
  LiteralOperand,
  NowOperand,
  PolicyRequest,
  RequestOperand,
  RowScope,
} from '../types.ts';
import { addSeconds, dayOf, movedNow, own, type Scalar } from '../values.ts';
import { isList } from '../visit.ts';

/**
 * How a request value turned out. A list that is absent, or holds nothing but absent elements, is
 * ABSENT: it decides nothing.
 */
export const ABSENT = 0;
const PRESENT = 1;
/** A list without elements. */
export const EMPTY = 2;
/** A list with present and absent elements. */
export const PARTIAL = 3;
/** A string whose only successors start with it. */
export const WITHOUT_SUCCESSOR = 4;
const STATES = 5;

interface SlotOperand {
  readonly kind: 'slot';
  readonly slot: number;
  readonly operand: RequestOperand | (Omit<NowOperand, 'span'> & { readonly list?: false });
}
export interface PlannedCount extends Omit<CountOperand, 'condition' | 'nullable' | 'span'> {
  readonly condition: Planned;
}
export type PlannedOperand = ColumnOperand | PlannedCount | LiteralOperand | SlotOperand;

/** A checked tree whose request-only leaves are numbered. */
export type Planned =
  | { readonly kind: 'const'; readonly value: boolean | undefined }
  | { readonly kind: 'and' | 'or'; readonly items: readonly Planned[] }
  | { readonly kind: 'not'; readonly item: Planned }
  | { readonly kind: 'decided'; readonly index: number }
  | PlannedCompare
  | { readonly kind: 'is null'; readonly negated: boolean; readonly operand: ColumnOperand }
  | CheckedChanged
  | PlannedQuantified;
interface PlannedQuantified extends Omit<CheckedQuantified, 'condition' | 'span'> {
  readonly condition: Planned;
}
export interface PlannedCompare extends Pick<CheckedCompare, 'kind' | 'op'> {
  readonly left: PlannedOperand;
  readonly right: PlannedOperand;
}

interface RequestSlot {
  readonly operand: SlotOperand['operand'];
  readonly scalar: ScalarKind;
  /** Reads a fact of the request. */
  readonly fact?: (request: PolicyRequest) => unknown;
  /** The record with this id is read: callers that are not users have none of their own. */
  readonly isRecord: boolean;
  /** Meets a column, so that its state is part of the signature. */
  meetsColumn: boolean;
  isPrefix: boolean;
  /** It is folded, and absent if nothing is left of it. */
  readonly isNeedle: boolean;
}
/** The id of a record that is read, or a value that is folded. */
type SlotUse = 'record' | 'needle';
type OperandVerdict = (binding: Binding) => boolean | undefined;

export interface RequestPlan {
  readonly tree: Planned;
  readonly slots: readonly RequestSlot[];
  readonly decided: readonly OperandVerdict[];
  /** The states and verdicts of a signature fit a safe integer. */
  readonly numeric: boolean;
}
export interface Binding {
  /** Present values, by slot. */
  readonly values: unknown[];
  readonly states: readonly number[];
  readonly decided: readonly (boolean | undefined)[];
  readonly signature: number | string;
  readonly now: string;
}

export function requestPlanOf(checked: Checked): RequestPlan {
  const planner = new Planner();
  const tree = planner.plan(checked);
  const { slots, decided } = planner;
  const ways = STATES ** slots.filter((slot) => slot.meetsColumn).length * 3 ** decided.length;
  return { tree, slots, decided, numeric: ways <= Number.MAX_SAFE_INTEGER };
}

class Planner {
  readonly slots: RequestSlot[] = [];
  readonly decided: OperandVerdict[] = [];
  readonly #known = new Map<string, number>();

  plan(node: Checked): Planned {
    switch (node.kind) {
      case 'const':
        return { kind: 'const', value: node.value };
      case 'and':
      case 'or':
        return { kind: node.kind, items: node.items.map((item) => this.plan(item)) };
      case 'not':
        return { kind: 'not', item: this.plan(node.item) };
      case 'compare':
        return this.compare(node);
      case 'is null': {
        invariant(node.operand.kind !== 'count', 'the checker tests no count for null');
        if (node.operand.kind === 'column')
          return { kind: 'is null', negated: node.negated, operand: this.#scoped(node.operand) };
        const { present } = this.reader(node.operand);
        return this.decide((binding) => present(binding) === node.negated);
      }
      case 'changed':
        return node;
      case 'quantified': {
        const { quantifier, variable } = node;
        const path = this.#scoped(node.path);
        return { kind: 'quantified', quantifier, path, variable, condition: this.plan(node.condition) };
      }
    }
  }

  compare(node: CheckedCompare): Planned {
    if (!isStored(node.left) && !isStored(node.right)) return this.decide(this.#verdict(node));
    const left = this.#operand(node.left);
    const right = this.#operand(node.right, OPERATORS[node.op].folds === true ? 'needle' : undefined);
    if (right.kind === 'slot' && OPERATORS[node.op].prefix) this.slots[right.slot]!.isPrefix = true;
    return columnFirst({ kind: 'compare', op: node.op, left, right });
  }

  decide(verdict: OperandVerdict): Planned {
    this.decided.push(verdict);
    return { kind: 'decided', index: this.decided.length - 1 };
  }

  #operand(operand: CheckedOperand, use?: SlotUse): PlannedOperand {
    if (operand.kind === 'literal') return operand;
    if (operand.kind === 'column') return this.#scoped(operand);
    if (operand.kind === 'count') {
      const { kind, variable, type } = operand;
      return { kind, path: this.#scoped(operand.path), variable, condition: this.plan(operand.condition), type };
    }
    const slot = this.slot(operand, use);
    this.slots[slot]!.meetsColumn = true;
    return { kind: 'slot', slot, operand };
  }

  /** An id that the request holds is a slot, as a value that meets a column is. */
  #scoped<T extends { readonly scope: RowScope }>(holder: T): T {
    const { scope } = holder;
    if (scope.kind !== 'request') return holder;
    const slot = this.slot(scope.operand, isCallersId(scope.operand) ? 'record' : undefined);
    this.slots[slot]!.meetsColumn = true;
    return { ...holder, scope: { ...scope, slot } };
  }

  /** A value that has a special use and another one, too, has two slots: it may be absent in that use alone. */
  slot(operand: SlotOperand['operand'], use?: SlotUse): number {
    const key = JSON.stringify(
      operand.kind === 'now'
        ? [operand.seconds, operand.zone]
        : [
            operand.source,
            operand.name,
            operand.detail,
            operand.type,
            operand.list,
            operand.meetsInt,
            ...(use === undefined ? [] : [use]),
          ],
    );
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    this.#known.set(key, this.slots.length);
    const [isRecord, isNeedle] = [use === 'record', use === 'needle'];
    const isFact = operand.kind === 'request' && operand.source === 'fact';
    this.slots.push({
      operand,
      ...(isFact && { fact: factReaderOf(operand) }),
      scalar: readerOfOperand(operand),
      isRecord,
      meetsColumn: false,
      isPrefix: false,
      isNeedle,
    });
    return this.slots.length - 1;
  }

  /** A request-only operand, read from a binding. */
  reader(operand: Exclude<CheckedOperand, ColumnOperand | CountOperand>): SlotReader {
    if (operand.kind === 'literal') {
      const state = operand.list && (operand.value as readonly Scalar[]).length === 0 ? EMPTY : PRESENT;
      const value = Array.isArray(operand.value) ? literalElements(operand) : operand.value;
      return { state: () => state, present: () => true, value: () => value };
    }
    if (operand.kind === 'now') {
      return { state: () => PRESENT, present: () => true, value: ({ now }) => movedNow(now, operand) };
    }
    const slot = this.slot(operand);
    const state = ({ states }: Binding): number => states[slot]!;
    return { state, present: (binding) => state(binding) !== ABSENT, value: (binding) => presentValue(binding, slot) };
  }

  #verdict(node: CheckedCompare): OperandVerdict {
    const left = this.reader(node.left as Exclude<CheckedOperand, ColumnOperand | CountOperand>);
    const right = this.reader(node.right as Exclude<CheckedOperand, ColumnOperand | CountOperand>);
    const holds = holdsOf(node);
    const list = isList(node.right) ? right : isList(node.left) ? left : undefined;
    const member = OPERATORS[node.op].negative !== true;
    return (binding) => {
      if (list !== undefined && list.state(binding) === EMPTY) return !member;
      if (!left.present(binding) || !right.present(binding)) return undefined;
      const answer = holds(left.value(binding), right.value(binding));
      // Kleene's `or` over the elements: unless a present one settles it, an absent one makes it unknown.
      return list !== undefined && list.state(binding) === PARTIAL && answer !== member ? undefined : answer;
    };
  }
}

const isCallersId = ({ source, name }: RequestOperand): boolean => source === 'auth' && name === 'id';

/** Only the record, in memory or in the database, has it. */
const isStored = (operand: CheckedOperand): operand is ColumnOperand | CountOperand =>
  operand.kind === 'column' || operand.kind === 'count';

interface SlotReader {
  state(binding: Binding): number;
  present(binding: Binding): boolean;
  value(binding: Binding): Scalar | readonly Scalar[];
}
type Holds = (left: Scalar | readonly Scalar[], right: Scalar | readonly Scalar[]) => boolean;

/** The numeral as it was written, where no double is that number. */
const exactOf = (operand: CheckedOperand): string | undefined =>
  operand.kind === 'literal' && typeof operand.exact === 'string' ? operand.exact : undefined;

const numeralOf = (operand: CheckedOperand): string | undefined =>
  operand.kind === 'literal' && typeof operand.value === 'number'
    ? (exactOf(operand) ?? String(operand.value))
    : undefined;

/** Both sides are present. Doubles decide everything except numerals that no double holds. */
export function holdsOf({ op, left, right }: CheckedCompare): Holds {
  const { holds, mirror } = OPERATORS[op];
  const [exactLeft, exactRight] = [exactOf(left), exactOf(right)];
  if (exactLeft === undefined && exactRight === undefined) return (a, b) => holds(a as Scalar, b, left.type);
  if (isList(left) || isList(right)) return () => holdsInList({ op, left, right }, (exactLeft ?? exactRight)!);
  const [writtenLeft, writtenRight] = [numeralOf(left), numeralOf(right)];
  if (writtenLeft !== undefined && writtenRight !== undefined)
    return () => holdsForNumerals(op, writtenLeft, writtenRight);
  if (exactRight !== undefined)
    return (a, b) => holdsForNumber(op, a as number, { value: b as number, exact: exactRight });
  return (a, b) => holdsForNumber(mirror!, b as number, { value: a as number, exact: exactLeft });
}

/** No element of a request is such a numeral; a literal beside it may be. */
function holdsInList({ op, left, right }: Pick<CheckedCompare, 'op' | 'left' | 'right'>, numeral: string): boolean {
  const list = isList(right) ? right : left;
  const written = list.kind === 'literal' && Array.isArray(list.exact) ? list.exact : [];
  const isElement = written.some((element) => compareNumerals(element, numeral) === 0);
  return isElement !== (OPERATORS[op].negative === true);
}

/** Leaves out the numerals that no stored number equals. */
export function literalElements({ value, exact }: LiteralOperand): readonly Scalar[] {
  return (value as readonly Scalar[]).filter((element, i) => {
    if (typeof element !== 'number') return true;
    return canEqual('float', { value: element, exact: exact?.[i] });
  });
}

/**
 * The column on the left where the operator has a mirror image; `list contains column` is
 * `column in list`.
 */
function columnFirst(node: PlannedCompare): PlannedCompare {
  if (node.left.kind === 'count') return node;
  if (node.right.kind === 'count')
    return { kind: 'compare', op: OPERATORS[node.op].mirror!, left: node.right, right: node.left };
  if (node.left.kind === 'column') return node;
  const isList = node.left.kind === 'slot' ? node.left.operand.list === true : node.left.list;
  const operator = OPERATORS[node.op];
  const mirror = isList ? operator.overList : operator.mirror;
  return mirror === undefined ? node : { kind: 'compare', op: mirror, left: node.right, right: node.left };
}

// ---------------------------------------------------------------- one request

export function bind(plan: RequestPlan, request: PolicyRequest): Binding {
  const { slots, decided } = plan;
  const values: unknown[] = new Array(slots.length);
  const states: number[] = new Array(slots.length);
  for (let i = 0; i < slots.length; i++) states[i] = readSlot(slots[i]!, { request, values, index: i });
  const verdicts: (boolean | undefined)[] = new Array(decided.length);
  const binding = { values, states, decided: verdicts, signature: 0 as number | string, now: request.now };
  for (let i = 0; i < decided.length; i++) verdicts[i] = decided[i]!(binding);
  binding.signature = signatureOf(plan, binding);
  return binding;
}

function signatureOf({ slots, numeric }: RequestPlan, { states, decided }: Binding): number | string {
  let number = 0;
  let text = '';
  for (let i = 0; i < slots.length; i++) {
    if (!slots[i]!.meetsColumn) continue;
    if (numeric) number = number * STATES + states[i]!;
    else text += states[i];
  }
  for (const verdict of decided) {
    const digit = verdict === undefined ? 2 : verdict ? 1 : 0;
    if (numeric) number = number * 3 + digit;
    else text += digit;
  }
  return numeric ? number : text;
}

/** The part of a request that holds the values of a source. */
const HOLDERS = { auth: 'auth', query: 'query', data: 'data', param: 'params', fact: 'facts' } as const;

interface SlotReading {
  readonly request: PolicyRequest;
  readonly values: unknown[];
  readonly index: number;
}

/** Returns the state of the value, and keeps it if it is present. */
function readSlot(
  { operand, fact, scalar, isRecord, isPrefix, isNeedle }: RequestSlot,
  { request, values, index }: SlotReading,
): number {
  if (operand.kind === 'now') {
    const { seconds, zone } = operand;
    values[index] = zone === undefined ? addSeconds(request.now, seconds) : dayOf(request.now, zone, seconds);
    return PRESENT;
  }
  const { source, name } = operand;
  if (isRecord && (request.kind ?? 'user') !== 'user') return ABSENT;
  const raw = fact === undefined ? own(request[HOLDERS[source]], name) : fact(request);
  const isText = source === 'query';
  // The caller's own record, and a filter of a URL, have values as a record has them.
  const readJson = (source !== 'data' && scalar.readStored) || scalar.readJson;
  if (operand.list) {
    const given = typeof raw === 'string' ? listGiven(operand, raw) : raw;
    if (!Array.isArray(given)) return ABSENT;
    if (given.length === 0) return EMPTY;
    const read = given.map((element) => (isText ? scalar.readText(String(element)) : readJson(element)));
    const present = read.filter((value) => value !== undefined);
    values[index] = present;
    if (present.length === given.length) return PRESENT;
    return present.length === 0 ? ABSENT : PARTIAL;
  }
  // A repeated key of the query has no single value.
  if (isText && typeof raw !== 'string') return ABSENT;
  const value = isText ? scalar.readText(raw as string) : readJson(raw);
  if (value === undefined || (isNeedle && isBlankNeedle(value as string))) return ABSENT;
  values[index] = value;
  return isPrefix && successorOf(value as string) === undefined ? WITHOUT_SUCCESSOR : PRESENT;
}

/** A single text of the query is a list of one; the record of the caller has a list as its canonical text. */
export function listGiven({ source }: RequestOperand, raw: unknown): unknown {
  if (typeof raw !== 'string') return raw;
  return source === 'query' ? [raw] : source === 'auth' ? listElements(raw) : raw;
}

function presentValue(binding: Binding, slot: number): Scalar | readonly Scalar[] {
  return binding.values[slot] as Scalar | readonly Scalar[];
}
