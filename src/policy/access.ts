/**
 * The gate: the only source of permits. The store requires a permit in its types, and the only way
 * to get one is to decide the rules of an action for one request. The rules of an action are a union;
 * an action without a rule is denied.
 */
import { present } from '../invariant.ts';
import { join, raw, type Sql, sql, type TenantValue } from '../sql.ts';
import type { Branch, LookUp, RelatedKeys } from './branch.ts';
import type { IsFew, Policy, PolicyRequest, Related, Residual, Row, Verdict } from './types.ts';

export interface AccessRules {
  readonly rules: readonly Policy[];
}
/** The remainder of one rule for a request. */
export interface PermitRule {
  readonly residual: Residual;
  readonly namesNext: boolean;
}
/** Set once, by Permit's static block, so that only this module can construct a permit. */
let make: (rules: readonly PermitRule[]) => Permit;
// Private to this module, so that code that casts around the types fails too.
const GATE = Symbol('gate');

/** The permission of one request for one action. INVARIANT: only `decide` makes one. */
export class Permit {
  readonly verdict: Verdict;
  /** The rules that the request leaves open, or the one that it already satisfies. */
  readonly rules: readonly PermitRule[];
  /** `where` looks up these related rows of each record. */
  readonly lookUps: readonly LookUp[];

  private constructor(rules: readonly PermitRule[], gate: symbol) {
    if (gate !== GATE) throw new Error('a permit is made by decide');
    this.rules = rules;
    // A rule that is satisfied is the only one.
    this.verdict = rules[0]?.residual.verdict ?? 'deny';
    this.lookUps = rules.length === 1 ? rules[0]!.residual.lookUps : rules.flatMap(({ residual }) => residual.lookUps);
  }

  static {
    make = (rules) => new Permit(rules, GATE);
  }

  /** Permits of one shape have the same SQL but for its values. No two shapes have one spelling. */
  get shape(): string {
    return this.verdict === 'depends' ? this.rules.map(({ residual }) => residual.shape).join() : this.verdict;
  }

  /** The same permit with places in its SQL, for a form: the request that fills it has a permit of this shape. */
  placed<Request>(permitOf: (request: Request) => Permit): Permit {
    return make(
      this.rules.map((rule, i) => ({
        ...rule,
        residual: rule.residual.placed((request: Request) => permitOf(request).rules[i]!.residual.values),
      })),
    );
  }

  /** The same permit for records of the tenant, which its SQL names as a value. Undefined: the tenant is unknown. */
  within(tenant: TenantValue | undefined): Permit {
    if (tenant === undefined || this.verdict !== 'depends') return this;
    return make(this.rules.map((rule) => ({ ...rule, residual: rule.residual.within(tenant) })));
  }

  /**
   * The permitted records, by the name of their row: the stored row of a list, read or delete, the
   * written row of a create.
   */
  where(alias: string): Sql {
    return unionOf(this.verdict, this.rules, alias);
  }

  /** list, read, create (the written record), delete. An update goes through `update`. */
  test(record: Row, related: Related): boolean {
    if (this.verdict !== 'depends') return this.verdict === 'allow';
    return this.rules.some(({ residual }) => residual.test(record, related));
  }

  /** True if a rule reads other rows than the record's own. */
  get consultsOthers(): boolean {
    if (this.verdict !== 'depends') return false;
    return this.rules.some(
      ({ residual: { needs } }) => needs.record.length + needs.next.length + needs.requested.length > 0,
    );
  }

  /**
   * `where` in parts, of which indexes find the first records by id; together they are `where`.
   * Undefined where some rule has a part that no index serves, and where the verdict is settled.
   */
  branches(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined {
    if (this.verdict !== 'depends') return undefined;
    const all: Branch[] = [];
    for (const { residual } of this.rules) {
      const some = residual.branches(alias, indexed);
      if (some === undefined) return undefined;
      all.push(...some);
    }
    return all;
  }

  /** The keys that related rows give, in an unknown number. */
  get relatedKeys(): RelatedKeys | undefined {
    return this.rules.length === 1 ? this.rules[0]!.residual.relatedKeys : undefined;
  }

  /** The branches of the records that need none of these keys; undefined: some have no index. */
  branchesBesideKeys(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined {
    return present(this.rules[0], 'the rule with keys').residual.branchesBesideKeys(alias, indexed);
  }

  /** The SELECT of these keys, or `where` for records that have one of the rows `keys`. */
  byKeys(alias: string, part: 'list' | 'test'): Sql {
    return present(this.rules[0], 'the rule with keys').residual.byKeys(alias, part);
  }

  /**
   * The same permit for statements that read few records, such as a page: `where` has lists of keys only where there
   * are few, and the rules share the look-ups of one relation.
   *
   * @param isFew undefined: it looks up everywhere
   * @param isHashed for statements that read all records: of the longer lists, these are kept in memory once, and
   * PostgreSQL chooses how it finds other related rows
   */
  lookingUp(isFew?: IsFew, isHashed?: IsFew): Permit {
    const { verdict, rules } = this;
    if (verdict !== 'depends' || !rules.some(({ residual }) => residual.walks)) return this;
    const [first, ...others] = rules.map(({ residual }) => residual);
    return make([{ residual: first!.lookingUp(others, isFew, isHashed), namesNext: false }]);
  }

  /**
   * The id in this belongs_to column of every permitted record (for an update, of the stored
   * record). Undefined: there can be several, or nothing is permitted.
   */
  pinned(column: string): string | undefined {
    if (this.verdict !== 'depends') return undefined;
    const [first = [], ...others] = this.rules.map(({ residual }) => residual.pinned(column));
    return first.find((id) => others.every((ids) => ids.includes(id)));
  }

  /** The values that every permitted record has, by the names of its members: one rule, or all, require them. */
  get facts(): Row {
    const [first = {}, ...others] = this.verdict === 'depends' ? this.rules.map(({ residual }) => residual.facts) : [];
    const isShared = ([name, value]: [string, unknown]): boolean => others.every((facts) => facts[name] === value);
    return others.length === 0 ? first : Object.fromEntries(Object.entries(first).filter(isShared));
  }

  /** The conditions between whose values the column of every permitted record lies. */
  bounds(column: string): readonly Residual[] {
    return this.rules.length === 1 ? this.rules[0]!.residual.bounds(column) : [];
  }

  get update(): UpdatePermit {
    return new UpdatePermit(this);
  }

  /**
   * The remaining permit for stored records that have the facts: the values of fields, belongs_tos and `id`,
   * by name.
   */
  given(facts: Row): Permit {
    if (this.verdict !== 'depends') return this;
    return make(unionLeft(this.rules, (rule) => ({ ...rule, residual: rule.residual.given(facts) })));
  }
}

/**
 * A rule that does not name `@next` must hold for the stored and for the written record, and one
 * and the same rule for both. A rule that names `@next` is asked once, of both records.
 */
export class UpdatePermit {
  readonly verdict: Verdict;
  readonly #rules: readonly PermitRule[];
  readonly #pure: readonly PermitRule[];

  constructor({ verdict, rules }: Permit) {
    this.verdict = verdict;
    // The record is one row, so a list of keys would be longer than a look-up.
    this.#rules = rules.map((rule) => ({ ...rule, residual: rule.residual.lookingUp([]) }));
    this.#pure = this.#rules.filter(({ namesNext }) => !namesNext);
  }

  /** True if a rule names `@next`, so that the stored record alone excludes nothing. */
  get seesBoth(): boolean {
    return this.verdict === 'depends' && this.#pure.length < this.#rules.length;
  }

  /** The stored records for which a rule that reads one record holds. */
  holds(alias: string): Sql {
    const isNone = this.verdict === 'depends' && this.#pure.length === 0;
    return isNone ? raw('FALSE') : unionOf(this.verdict, this.#pure, alias);
  }

  /** The stored records that an update may find. A rule that names `@next` excludes none beforehand. */
  where(alias: string): Sql {
    return this.seesBoth ? raw('TRUE') : this.holds(alias);
  }

  /**
   * The condition that permits the update, given the names of the stored row and of the written row.
   *
   * @param changed the columns in which the rows may differ: a rule that reads none of them is asked once. Default: all.
   */
  allows(alias: string, next: string, changed?: ReadonlySet<string>): Sql {
    if (this.verdict !== 'depends') return settled(this.verdict);
    const branches = this.#rules.map(({ residual, namesNext }) => {
      const mayDiffer = (each: Residual): boolean => changed === undefined || each.readsAny(changed);
      if (namesNext) return residual.whereInUnion(alias, mayDiffer(residual) ? next : alias);
      const stored = residual.whereInUnion(alias);
      const { written } = residual;
      return mayDiffer(written) ? sql`(${stored} AND ${written.whereInUnion(next)})` : stored;
    });
    return unionSql(branches);
  }
}

export function decide({ rules, request }: AccessRules & { readonly request: PolicyRequest }): Permit {
  return make(unionLeft(rules, (rule) => ({ residual: rule.specialise(request), namesNext: rule.namesNext })));
}

/** The rules that are open, or the one that is satisfied; those after it are not looked at. */
function unionLeft<T>(rules: readonly T[], leftOf: (rule: T) => PermitRule): readonly PermitRule[] {
  const left: PermitRule[] = [];
  for (const each of rules) {
    const rule = leftOf(each);
    const { residual } = rule;
    if (residual.verdict === 'allow') return [rule];
    if (residual.verdict === 'depends') left.push(rule);
  }
  return left;
}

function unionOf(verdict: Verdict, rules: readonly PermitRule[], alias: string): Sql {
  if (verdict !== 'depends') return settled(verdict);
  if (rules.length === 1) return rules[0]!.residual.where(alias);
  return unionSql(rules.map(({ residual }) => residual.whereInUnion(alias)));
}

const settled = (verdict: 'allow' | 'deny'): Sql => raw(verdict === 'allow' ? 'TRUE' : 'FALSE');

const unionSql = (branches: readonly Sql[]): Sql => join([raw('('), join(branches, ' OR '), raw(')')], '');
