/** The facts that a request brings, as values that are not known yet: its address, method, origin and kind, and the hour. */
import { type IpAddress, parseNetwork } from '../../request/networks.ts';
import { ADDRESS_FACT, factReaderOf, REQUEST_FACTS } from '../../request/request-facts.ts';
import type { Action, CheckedOperand, RequestFacts, RequestOperand } from '../../types.ts';
import { addSeconds, type Scalar } from '../../values.ts';
import { all, atom, someOf } from './formula.ts';
import type { Rows } from './rows.ts';
import type { Standing } from './standing.ts';
import { rootOf, type Term } from './variables.ts';

/** An address outside of the networks of most policies (RFC 5737). */
const USUAL_ADDRESS = '203.0.113.7';
const USUAL_METHOD: Readonly<Record<Action, string>> = {
  list: 'GET',
  read: 'GET',
  create: 'POST',
  update: 'PATCH',
  delete: 'DELETE',
};
const HOUR = 3600;
const HOURS_OF_A_WEEK = 168;

type ValueOf = (term: Term) => Scalar | null | undefined;

const isFact = (operand: CheckedOperand): operand is RequestOperand =>
  operand.kind === 'request' && operand.source === 'fact';

export class FactTerms {
  readonly #rows: Rows;
  readonly #standing: Standing;
  readonly #known = new Map<string, Term>();
  readonly #operands = new Map<string, RequestOperand>();

  constructor(rows: Rows, standing: Standing) {
    this.#rows = rows;
    this.#standing = standing;
  }

  get all(): readonly Term[] {
    return [...this.#known.values()];
  }

  /** Undefined: not reasoned about, which is so of the hour beside instants that a policy states. */
  term(operand: RequestOperand): Term | undefined {
    const { name, detail } = operand;
    if (name.startsWith('now.') && !this.#standing.isNowFree) return undefined;
    const key = `${name} ${detail}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const isTest = name === ADDRESS_FACT && detail !== undefined;
    const term = isTest ? this.#networkTest(operand) : this.#fact(operand);
    this.#rows.trail.put(this.#known, key, term);
    this.#rows.trail.put(this.#operands, key, operand);
    return term;
  }

  #fact({ name, type }: RequestOperand): Term {
    const term = this.#rows.value(type, name === ADDRESS_FACT || name === 'request.origin')!;
    const values = REQUEST_FACTS.get(name)!.values;
    if (values !== undefined) term.allowed = [...values];
    if (name === 'request.kind') term.allowed = [this.#standing.caller.kind];
    if (name === 'request.method') {
      const usual = USUAL_METHOD[this.#standing.action];
      term.allowed = [usual, ...[...values!].filter((value) => value !== usual)];
    }
    if (name === ADDRESS_FACT) term.allowed = this.#standing.addresses;
    if (term.allowed?.length === 1) term.value = term.allowed[0];
    return term;
  }

  /** A test of the address against networks is absent where the request has no address. */
  #networkTest(operand: RequestOperand): Term {
    const { detail: _, ...plain } = operand;
    const address = this.term({ ...plain, type: 'string' })!;
    const test = this.#rows.value('bool', true)!;
    const isIn = factReaderOf(operand);
    const { terms } = this.#rows;
    const [inside, outside] = [true, false].map((wanted) =>
      this.#standing.addresses.filter((ip) => isIn({ auth: null, query: {}, now: '', facts: { ip } }) === wanted),
    );
    const cases = [
      all([atom(() => terms.isOneOf(address, inside!)), atom(() => terms.is(test, true))]),
      all([atom(() => terms.isOneOf(address, outside!)), atom(() => terms.is(test, false))]),
      all([atom(() => terms.absent(address)), atom(() => terms.absent(test))]),
    ];
    this.#rows.trail.push(this.#rows.axioms, someOf(cases));
    return test;
  }

  /** The facts that the world needs. */
  facts(give: ValueOf): RequestFacts {
    const given = [...this.#known].flatMap(([key, term]) => {
      const { name, detail } = this.#operands.get(key)!;
      const value = give(term);
      const isSent = name.startsWith('request.') && name !== 'request.kind' && detail === undefined;
      return isSent && value != null ? [[name.slice('request.'.length), String(value)] as const] : [];
    });
    return Object.fromEntries(given);
  }

  /** The instant of the request, at the hour and on the day that the rules ask for. */
  now(give: ValueOf): string | undefined {
    const asked = [...this.#known].flatMap(([key, term]) => {
      const operand = this.#operands.get(key)!;
      const isFixed = operand.name.startsWith('now.') && rootOf(term).isPresent === true;
      return isFixed ? [{ read: factReaderOf(operand), value: give(term) }] : [];
    });
    if (asked.length === 0) return this.#standing.now;
    const hours = Array.from({ length: HOURS_OF_A_WEEK }, (_, i) => addSeconds(this.#standing.now, i * HOUR));
    return hours.find((now) => asked.every(({ read, value }) => read({ auth: null, query: {}, now }) === value));
  }
}

/** Addresses that represent all others: the first of each network, the first behind it, and the first of all. */
export function addressesFor(operands: readonly CheckedOperand[]): readonly string[] {
  const tests = operands.filter((operand) => isFact(operand) && operand.name === ADDRESS_FACT && operand.detail);
  const texts = tests.flatMap((operand) => (operand as RequestOperand).detail!.split(' '));
  const networks = texts.flatMap((text) => parseNetwork(text) ?? []);
  const ends = networks.flatMap(({ bits, value, prefix }) => {
    const behind = value + (1n << BigInt(bits - prefix));
    return [{ bits, value }, ...(behind >> BigInt(bits) === 0n ? [{ bits, value: behind }] : [])];
  });
  const firsts: readonly IpAddress[] = [
    { bits: 32, value: 0n },
    { bits: 128, value: 0n },
  ];
  return [...new Set([USUAL_ADDRESS, ...[...ends, ...firsts].map(addressText)])];
}

function addressText({ bits, value }: IpAddress): string {
  const [count, width, base] = bits === 32 ? [4, 8n, 10] : [8, 16n, 16];
  const parts = Array.from(
    { length: count },
    (_, i) => (value >> (BigInt(count - 1 - i) * width)) & ((1n << width) - 1n),
  );
  return parts.map((part) => part.toString(base)).join(bits === 32 ? '.' : ':');
}
