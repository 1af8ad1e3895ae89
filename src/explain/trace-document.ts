/** A trace as the document that `POST /api/_explain` sends and `bylaw explain --json` prints. */
import type { Clause } from '../policy/analyse/explanation.ts';
import { isBeyondLimit } from './asked-access.ts';
import type { FilterTrace } from './filter-trace.ts';
import type { CheckTrace, RuleTrace, Trace } from './trace.ts';

type ThreeValued = boolean | null;
/** null: no record is given, or the rule is withheld. */
type LeafValue = 'true' | 'false' | 'unknown' | null;

export interface TraceDocument {
  readonly data: {
    /** null: it depends on the record, or on what is withheld of a stored record that a create copies. */
    readonly allowed: ThreeValued;
    /** The status of the HTTP response; null: it depends on the record. A list without the record is a 200. */
    readonly status: number | null;
    /** The index of the rule that allows; null: none does, or it depends on the record. */
    readonly decided_by: number | null;
    readonly residual: 'allow' | 'deny' | 'depends';
    /** The limit of the key leaves the action out, so no rule is asked. */
    readonly beyond_limit: boolean;
    readonly rules: readonly RuleDocument[];
    readonly members: readonly MemberDocument[];
    /** The checks of a create or an update. */
    readonly checks: readonly CheckDocument[];
    /** The has_one relations that the write sets, if the rules of its record allow it. */
    readonly partners: readonly { readonly name: string; readonly allowed: boolean }[];
    /** null where the request alone decides. */
    readonly sql: string | null;
    readonly params: readonly unknown[];
    readonly plan: readonly string[];
    /** The values that a create without data lacks. */
    readonly missing: readonly string[];
    /** The filter of a list, for the record; null if none is given. */
    readonly filter: FilterDocument | null;
  };
}

interface FilterDocument {
  readonly value: LeafValue;
  readonly leaves: readonly Omit<LeafDocument, 'of'>[];
}

interface RuleDocument {
  /** Empty: any caller. */
  readonly roles: readonly string[];
  /** The author's text; null for a rule with roles only. */
  readonly when: string | null;
  readonly residual: 'allow' | 'deny' | 'depends';
  /** A rule of an update without `@next` is about both records. */
  readonly value: LeafValue;
  /** The rule reads what the asker may not see: it has no value, reasons and leaves. */
  readonly withheld: boolean;
  readonly reasons: readonly string[];
  readonly leaves: readonly LeafDocument[];
}

export interface LeafDocument {
  readonly text: string;
  /** UTF-16 units from the start of `when`; null for roles, and for the body of a named condition. */
  readonly offset: number | null;
  readonly length: number;
  readonly value: LeafValue;
  /** The sides of a comparison; null if there is none, or the side is null. */
  readonly left: unknown;
  readonly right: unknown;
  /** The operand that was null, if the value is unknown. */
  readonly absent: string | null;
  /** The element of a to-many relation, such as `memberships <id>`; null outside of quantifiers. */
  readonly element: string | null;
  /** The stored record or the result, for a rule of an update without `@next`. */
  readonly of: 'stored' | 'written' | null;
}

interface CheckDocument {
  readonly name: string;
  readonly message: string;
  readonly when: string;
  /** null: no record is given, or the check is withheld. */
  readonly passes: ThreeValued;
  readonly leaves: readonly LeafDocument[];
}

interface MemberDocument {
  readonly name: string;
  readonly when: string;
  readonly allowed: ThreeValued;
  /** A sentence for each of its rules, given a record or a write. */
  readonly reasons: readonly string[];
}

const ALLOWED = { allow: true, deny: false, depends: null };

type IsWithheld = (rule: RuleTrace) => boolean;

/** @param isWithheld from an asker who lacks the role `admin`: rules that may read what they may not. Default: none. */
export function traceDocument(trace: Trace, isWithheld?: IsWithheld): TraceDocument {
  const hides = isWithheld ?? (() => false);
  const isPart = trace.rules.some(hides);
  // A create by the asker would need the values that are hidden from it.
  const isUntold = isCopy(trace) && (isPart || trace.checks.some(({ violation }) => hides(violation)));
  const { filter } = trace;
  // The statement says what the request leaves of each rule.
  const statement = isPart ? undefined : trace.statement;
  return {
    data: {
      allowed: isUntold ? null : ALLOWED[trace.verdict],
      status: isUntold ? null : (trace.status ?? null),
      decided_by: isPart ? null : (trace.decidedBy ?? null),
      residual: trace.residual,
      beyond_limit: isBeyondLimit(trace.question),
      rules: trace.rules.map((rule) => ruleDocument(rule, hides(rule))),
      members: trace.members.map((member) => ({
        name: member.name,
        when: member.text,
        allowed: ALLOWED[member.verdict],
        reasons: member.rules
          .filter((rule) => !hides(rule))
          .flatMap(({ explanations }) => explanations.map(({ sentence }) => sentence)),
      })),
      checks: trace.checks.map((each) => checkDocument(each, hides(each.violation))),
      partners: trace.partners.map(({ name, isAllowed }) => ({ name, allowed: isAllowed })),
      sql: statement?.sql ?? null,
      params: statement?.params ?? [],
      // The planner's estimates are about rows that the asker may not see.
      plan: isWithheld === undefined ? (statement?.plan ?? []) : [],
      missing: trace.missing,
      filter: filter === undefined ? null : filterDocument(filter),
    },
  };
}

/** A create is asked about a stored record. */
const isCopy = ({ question: { action, record } }: Trace): boolean => action === 'create' && record !== undefined;

const filterDocument = ({ clause }: FilterTrace): FilterDocument => ({
  value: leafValue(clause.value),
  leaves: leafDocuments(clause, null),
});

/** The value of a rule, and of each leaf, without a record to place it in. */
export const clausesDocument = (clauses: readonly Clause[]) => ({
  value: leafValue(conjunctionOf(clauses)),
  leaves: clauses.flatMap((clause) => leafDocuments(clause, null)),
});

function ruleDocument({ parts, residual, explanations }: RuleTrace, withheld: boolean): RuleDocument {
  const { roles, when = null } = parts;
  if (withheld) return { roles, when, residual: 'depends', value: null, withheld, reasons: [], leaves: [] };
  const [first, second] = explanations;
  const sides = second === undefined ? ([null] as const) : (['stored', 'written'] as const);
  return {
    roles,
    when,
    residual,
    value: first === undefined ? null : leafValue(conjunctionOf(explanations.map(({ clause }) => clause))),
    withheld,
    reasons: explanations.map(({ sentence }) => sentence),
    leaves: explanations.flatMap(({ clause }, i) =>
      leafDocuments(clause, null).map((leaf) => ({ ...leaf, offset: within(when, leaf.offset), of: sides[i]! })),
    ),
  };
}

function checkDocument({ check, violation }: CheckTrace, withheld: boolean): CheckDocument {
  const { name, message, when } = check;
  const { allowed: fails, explanations } = violation;
  const passes = withheld || fails === undefined ? null : !fails;
  const leaves = withheld ? [] : explanations.flatMap(({ clause }) => leafDocuments(clause, null));
  return { name, message, when, passes, leaves: leaves.map((leaf) => ({ ...leaf, of: null })) };
}

const leafValue = (value: boolean | undefined): LeafValue =>
  value === undefined ? 'unknown' : value ? 'true' : 'false';

/** The roles follow the author's text. */
const within = (when: string | null, offset: number | null): number | null =>
  when === null || offset === null || offset >= when.length ? null : offset;

/** Kleene's `and`. */
function conjunctionOf(clauses: readonly Clause[]): boolean | undefined {
  const values = clauses.map(({ value }) => value);
  if (values.includes(false)) return false;
  return values.includes(undefined) ? undefined : true;
}

function leafDocuments(clause: Clause, within: string | null): readonly Omit<LeafDocument, 'of'>[] {
  const element = clause.element ?? within;
  if (clause.parts.length > 0) return clause.parts.flatMap((part) => leafDocuments(part, element));
  const { text, offset = null, absent = null, sides } = clause;
  const [left, right] = [sides?.left ?? null, sides?.right ?? null];
  return [{ text, offset, length: text.length, value: leafValue(clause.value), left, right, absent, element }];
}
