/** A trace as the document that `bylaw explain --json` prints. */
import type { Clause, Explanation } from '../../policy/analyse/explanation.ts';
import type { RuleTrace, Trace } from './trace.ts';

type ThreeValued = boolean | null;

export interface TraceDocument {
  readonly data: {
    /** null: it depends on the record. */
    readonly allowed: ThreeValued;
    /** The status of the HTTP response; null: it depends on the record. A list without the record is a 200. */
    readonly status: number | null;
    /** The index of the rule that allows; null: none does, or it depends on the record. */
    readonly decided_by: number | null;
    readonly residual: 'allow' | 'deny' | 'depends';
    readonly rules: readonly RuleDocument[];
    readonly members: readonly MemberDocument[];
    /** null where the request alone decides. */
    readonly sql: string | null;
    readonly params: readonly unknown[];
    readonly plan: readonly string[];
  };
}

interface RuleDocument {
  /** Empty: any caller. */
  readonly roles: readonly string[];
  /** The author's text; null for a rule with roles only. */
  readonly when: string | null;
  readonly residual: 'allow' | 'deny' | 'depends';
  /** null: unknown, or no record is given. A rule of an update without `@next` is about both records. */
  readonly value: ThreeValued;
  readonly reasons: readonly string[];
  readonly leaves: readonly LeafDocument[];
}

interface LeafDocument {
  readonly text: string;
  /** UTF-16 units from the start of `when`; null for roles, and for the body of a named condition. */
  readonly offset: number | null;
  readonly length: number;
  readonly value: ThreeValued;
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

interface MemberDocument {
  readonly name: string;
  readonly when: string;
  readonly allowed: ThreeValued;
  /** A sentence for each of its rules, given a record or a write. */
  readonly reasons: readonly string[];
}

const ALLOWED = { allow: true, deny: false, depends: null };

export function traceDocument(trace: Trace): TraceDocument {
  const { statement } = trace;
  return {
    data: {
      allowed: ALLOWED[trace.verdict],
      status: trace.status ?? null,
      decided_by: trace.decidedBy ?? null,
      residual: trace.residual,
      rules: trace.rules.map(ruleDocument),
      members: trace.members.map((member) => ({
        name: member.name,
        when: member.text,
        allowed: ALLOWED[member.verdict],
        reasons: member.rules.flatMap(({ explanations }) => explanations.map(({ sentence }) => sentence)),
      })),
      sql: statement?.sql ?? null,
      params: statement?.params ?? [],
      plan: statement?.plan ?? [],
    },
  };
}

function ruleDocument({ parts, residual, explanations }: RuleTrace): RuleDocument {
  const { roles, when = null } = parts;
  const [first, second] = explanations;
  const sides = second === undefined ? ([null] as const) : (['stored', 'written'] as const);
  return {
    roles,
    when,
    residual,
    value: first === undefined ? null : conjunctionOf(explanations),
    reasons: explanations.map(({ sentence }) => sentence),
    leaves: explanations.flatMap(({ clause }, i) =>
      leafDocuments(clause, null).map((leaf) => ({ ...leaf, offset: within(when, leaf.offset), of: sides[i]! })),
    ),
  };
}

/** The roles follow the author's text. */
const within = (when: string | null, offset: number | null): number | null =>
  when === null || offset === null || offset >= when.length ? null : offset;

/** Kleene's `and`. */
function conjunctionOf(explanations: readonly Explanation[]): ThreeValued {
  const values = explanations.map(({ clause }) => clause.value);
  if (values.includes(false)) return false;
  return values.includes(undefined) ? null : true;
}

function leafDocuments(clause: Clause, within: string | null): readonly Omit<LeafDocument, 'of'>[] {
  const element = clause.element ?? within;
  if (clause.parts.length > 0) return clause.parts.flatMap((part) => leafDocuments(part, element));
  const { text, offset = null, value = null, absent = null, sides } = clause;
  const [left, right] = [sides?.left ?? null, sides?.right ?? null];
  return [{ text, offset, length: text.length, value, left, right, absent, element }];
}
