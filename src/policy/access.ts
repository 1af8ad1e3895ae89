/**
 * The gate: the only maker of permits. The store asks for a permit in its types, and a permit is had only by deciding the rules of an action for one
 * request. The rules of an action are a union; an action without a rule is denied.
 */
import { join, raw, type Sql } from '../sql.ts';
import { invariant } from './condition.ts';
import type { Needs } from './emit/needs.ts';
import type { Need, Policy, PolicyRequest, Related, Residual, Row } from './types.ts';

export interface AccessRules {
  readonly rules: readonly Policy[];
}
/** What the request left of one rule. */
export interface PermitRule {
  readonly residual: Residual;
  readonly namesNext: boolean;
}
/** The stored record and the record as it would be after an update, with what they are related to. */
export interface Change {
  readonly record: Row;
  readonly related: Related;
  readonly next: Row;
  readonly nextRelated: Related;
}

const NO_NEEDS: Needs = { record: [], next: [] };
const makers = new WeakSet<object>();
let make: (parts: PermitParts) => Permit;
// Known to this module alone, so that what casts around the types fails as well.
const GATE = Symbol('gate');

interface PermitParts {
  readonly rules: readonly PermitRule[];
  readonly reason?: string;
}

/** What one request may do by one action. INVARIANT: none exists that `decide` or `systemPermit` did not make. */
export class Permit {
  readonly verdict: Residual['verdict'];
  /** The rules that the request left open, or the one that it already met. */
  readonly rules: readonly PermitRule[];
  /** Why the program acts on its own behalf, for those permits that no request is behind. */
  readonly reason: string | undefined;

  private constructor({ rules, reason }: PermitParts, gate: symbol) {
    invariant(gate === GATE, 'a permit is made by decide or systemPermit');
    this.rules = rules;
    this.reason = reason;
    this.verdict = reason !== undefined ? 'allow' : verdictOf(rules);
    makers.add(this);
  }

  static {
    make = (parts) => new Permit(parts, GATE);
  }

  /** The records, stored and named `alias`, that are permitted: list, read, delete. */
  where(alias: string): Sql {
    return unionOf(this.verdict, { rules: this.rules, alias });
  }

  /** list, read, create, delete. An update goes through `update`. */
  test(record: Row, related: Related): boolean {
    if (this.verdict !== 'depends') return this.verdict === 'allow';
    return this.rules.some(({ residual }) => residual.test(record, related));
  }

  /** Of `test`: what hangs on the record must be there. On create, `next` is to be read of the record too. */
  get needs(): Needs {
    return this.verdict === 'depends' ? mergedNeeds(this.rules.map(({ residual }) => residual.needs)) : NO_NEEDS;
  }

  get update(): UpdatePermit {
    return new UpdatePermit(this);
  }
}

/**
 * A rule that does not name `@next` must hold for the stored and for the resulting record, and one and the same rule for both. So: lock the row and select
 * `columns` with it; then ask `holds` with their values. A rule that names `@next` is asked once, with both records.
 */
export class UpdatePermit {
  readonly verdict: Residual['verdict'];
  readonly #rules: readonly PermitRule[];
  readonly #pure: readonly PermitRule[];

  constructor({ verdict, rules }: Permit) {
    this.verdict = verdict;
    this.#rules = rules;
    this.#pure = rules.filter(({ namesNext }) => !namesNext);
  }

  /** A boolean expression (NULL is not true) for each rule that speaks of one record, in a fixed order. None when the verdict is settled. */
  columns(alias: string): readonly Sql[] {
    return this.verdict === 'depends' ? this.#pure.map(({ residual }) => residual.where(alias)) : [];
  }

  /** The stored records that an update may find. A rule that names `@next` excludes none beforehand. */
  where(alias: string): Sql {
    if (this.verdict === 'depends' && this.#pure.length < this.#rules.length) return raw('TRUE');
    return unionOf(this.verdict, { rules: this.#pure, alias });
  }

  /** `stored`: what the columns came to on the locked row. */
  holds(stored: readonly boolean[], { record, related, next, nextRelated }: Change): boolean {
    if (this.verdict !== 'depends') return this.verdict === 'allow';
    invariant(stored.length === this.#pure.length, 'every rule was asked of the stored record');
    if (this.#pure.some(({ residual }, i) => stored[i] === true && residual.test(next, nextRelated))) return true;
    return this.#rules.some(
      ({ residual, namesNext }) => namesNext && residual.test(record, related, next, nextRelated),
    );
  }

  /** What `holds` reads: rules of one record are asked of the resulting one. */
  get needs(): Needs {
    if (this.verdict !== 'depends') return NO_NEEDS;
    return mergedNeeds(
      this.#rules.map(({ residual: { needs }, namesNext }) => (namesNext ? needs : { record: [], next: needs.record })),
    );
  }
}

export function decide({ rules, request }: AccessRules & { readonly request: PolicyRequest }): Permit {
  const left: PermitRule[] = [];
  for (const rule of rules) {
    const residual = rule.specialise(request);
    if (residual.verdict === 'allow') return make({ rules: [{ residual, namesNext: rule.namesNext }] });
    if (residual.verdict === 'depends') left.push({ residual, namesNext: rule.namesNext });
  }
  return make({ rules: left });
}

/** For what the program does on its own behalf (registration, the command line). `reason` stands in the code, so that each of them can be found. */
export function systemPermit(reason: string): Permit {
  invariant(reason.length > 0, 'a system permit says what it is for');
  return make({ rules: [], reason });
}

/** At run time too, a look-alike is no permit. */
export const isPermit = (value: unknown): value is Permit =>
  typeof value === 'object' && value !== null && makers.has(value);

function verdictOf(rules: readonly PermitRule[]): Residual['verdict'] {
  if (rules.length === 0) return 'deny';
  return rules.some(({ residual }) => residual.verdict === 'allow') ? 'allow' : 'depends';
}

function unionOf(
  verdict: Residual['verdict'],
  { rules, alias }: { readonly rules: readonly PermitRule[]; readonly alias: string },
): Sql {
  if (verdict !== 'depends') return raw(verdict === 'allow' ? 'TRUE' : 'FALSE');
  const [only] = rules;
  if (rules.length === 1 && only !== undefined) return only.residual.where(alias);
  const branches = rules.map(({ residual }) => residual.whereInUnion(alias));
  return join([raw('('), join(branches, ' OR '), raw(')')], '');
}

function mergedNeeds(all: readonly Needs[]): Needs {
  return { record: merged(all.flatMap(({ record }) => record)), next: merged(all.flatMap(({ next }) => next)) };
}

function merged(needs: readonly Need[]): readonly Need[] {
  const branches = new Map<string, Need[]>();
  for (const { relation, needs: inner } of needs) branches.set(relation, [...(branches.get(relation) ?? []), ...inner]);
  return [...branches].map(([relation, inner]) => ({ relation, needs: merged(inner) }));
}
