import type { JSX } from 'preact';
import { pathTo } from '../../app/page-address.ts';
import type { ExplainedLeaf, ExplainedRule, WhyExplanation, WhyQuestion } from '../../data/why-question.ts';
import { wording } from '../../en.ts';
import { ProseText } from '../../parts/prose-text.tsx';
import { TableHead } from '../../parts/table-head.tsx';

interface ExplanationViewProps {
  readonly question: WhyQuestion;
  readonly explanation: WhyExplanation;
  /** The rules of one field or reference alone. */
  readonly member?: string | undefined;
}

export function ExplanationView({ question, explanation, member }: ExplanationViewProps): JSX.Element {
  const { status, decided_by: decidedBy, sql, params, plan } = explanation;
  const own = explanation.members.find(({ name }) => name === member);
  const rules = own === undefined ? explanation.rules : [];
  const members = own === undefined ? explanation.members : [own];
  const verdict = shownVerdict(own === undefined ? [explanation.allowed] : [explanation.allowed, own.allowed]);
  return (
    <section aria-label={wording.answer} class="explanation">
      <p class={`verdict ${verdict}`} role="status">
        <strong>{wording.verdicts[verdict]}</strong>
        {status !== null && <span> {`${wording.status} ${status}`}</span>}
        {question.record !== '' && (
          <a href={pathTo('data', question.collection, { record: question.record })}>{wording.openRecord}</a>
        )}
      </p>
      {rules.length === 0 && own === undefined && <p>{wording.noRules}</p>}
      <ol class="rules">
        {rules.map((rule, i) => (
          <li key={i}>
            <RuleView rule={rule} number={i + 1} isDecisive={i === decidedBy} />
          </li>
        ))}
      </ol>
      {members.length > 0 && (
        <>
          <h2>{wording.memberRules}</h2>
          <ul>
            {members.map(({ name, when, allowed, reasons }) => (
              <li key={`${name} ${when}`}>
                <code>{name}</code> <code>{when}</code>{' '}
                <ValueBadge value={allowed === null ? null : allowed ? 'true' : 'false'} />
                {reasons.map((reason) => (
                  <p key={reason}>
                    <ProseText text={reason} />
                  </p>
                ))}
              </li>
            ))}
          </ul>
        </>
      )}
      {sql !== null && (
        <details>
          <summary>{wording.statement}</summary>
          <pre tabIndex={0}>{[sql, '', JSON.stringify(params), '', ...plan].join('\n')}</pre>
        </details>
      )}
    </section>
  );
}

/** The record has to be allowed, and its member. */
function shownVerdict(all: readonly (boolean | null)[]): keyof typeof wording.verdicts {
  if (all.includes(false)) return 'refused';
  return all.includes(null) ? 'depends' : 'allowed';
}

interface RuleViewProps {
  readonly rule: ExplainedRule;
  /** From 1. */
  readonly number: number;
  readonly isDecisive: boolean;
}

function RuleView({ rule, number, isDecisive }: RuleViewProps): JSX.Element {
  const { roles, when, residual, value, reasons, leaves } = rule;
  return (
    <article class={isDecisive ? 'rule decisive' : 'rule'}>
      <p>
        {roles.length > 0 && <code>{`roles: [${roles.join(', ')}]`}</code>} {when !== null && <code>{when}</code>}{' '}
        <ValueBadge value={value ?? RESIDUAL_VALUES[residual]} />
        {isDecisive && <strong> {wording.decides}</strong>}
      </p>
      {reasons.map((reason) => (
        <p key={reason}>
          <ProseText text={reason} />
        </p>
      ))}
      {leaves.length > 0 && (
        <div class="scroll" role="region" tabIndex={0} aria-label={`${wording.leaves} ${number}`}>
          <LeafTable leaves={leaves} />
        </div>
      )}
    </article>
  );
}

/** The value by the request alone, for a question about no record. */
const RESIDUAL_VALUES = { allow: 'true', deny: 'false', depends: null } as const;

function LeafTable({ leaves }: { readonly leaves: readonly ExplainedLeaf[] }): JSX.Element {
  return (
    <table>
      <TableHead titles={[wording.leaf, wording.value, wording.left, wording.right, wording.leafNote]} />
      <tbody>
        {leaves.map(({ text, value, left, right, absent, element }, i) => (
          <tr key={i}>
            <td>
              <code>{text}</code>
            </td>
            <td>
              <ValueBadge value={value} />
            </td>
            <td>{shownSide(left)}</td>
            <td>{shownSide(right)}</td>
            <td>{[element, absent].filter((note) => note !== null).join(' · ')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const shownSide = (side: unknown): string => (side === null || side === undefined ? '' : JSON.stringify(side));

/** A word beside the colour: neither says it alone. */
function ValueBadge({ value }: { readonly value: ExplainedLeaf['value'] }): JSX.Element {
  const name = value ?? 'depends';
  return <span class={`value ${name}`}>{wording.values[name]}</span>;
}
