/** The access of one user, and to one record: asked of the service. */
import type { JSX } from 'preact';
import { callerName } from '../../data/caller-names.ts';
import { askMatrix } from '../../data/matrix-question.ts';
import { askWhy } from '../../data/why-question.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { RULE_ACTIONS, type RuleAction } from '../policies/rule-sets.ts';
import { callersAfter } from '../policies/table-subjects.tsx';
import type { RoleAccess } from './role-access.ts';

/** The part of an action that its rules leave open for the caller. */
async function accessOfCaller(caller: string, collection: string, action: RuleAction): Promise<RoleAccess> {
  const { allowed, rules } = await askWhy({ collection, action, record: '', as: caller });
  if (allowed !== null) return { verdict: allowed ? 'allow' : 'deny', conditions: [] };
  const open = rules.filter(({ residual }) => residual === 'depends');
  return { verdict: 'depends', conditions: open.flatMap(({ when }) => when ?? []) };
}

interface CallerAccessProps {
  readonly caller: string;
  readonly collection: string;
  readonly children: (access: RoleAccess) => JSX.Element;
}

/** The cells of a row of the table of roles. */
export function CallerAccess({ caller, collection, children }: CallerAccessProps): JSX.Element {
  const ask = () => Promise.all(RULE_ACTIONS.map((action) => accessOfCaller(caller, collection, action)));
  const answer = useAnswer(`${collection} ${caller}`, ask);
  if (answer === undefined || 'problem' in answer)
    return (
      <td colSpan={RULE_ACTIONS.length}>
        <Answered answer={answer}>{() => null}</Answered>
      </td>
    );
  return (
    <>
      {answer.value.map((access, i) => (
        <td key={RULE_ACTIONS[i]}>{children(access)}</td>
      ))}
    </>
  );
}

const RECORD_ACTIONS = RULE_ACTIONS.filter((action) => action !== 'create');

interface RecordAccessProps {
  readonly record: string;
  readonly collection: string;
  /** A caller beside the roles and a guest; empty: none. */
  readonly caller: string;
}

export function RecordAccess({ record, collection, caller }: RecordAccessProps): JSX.Element {
  const callers = callersAfter([caller]);
  const ask = () => {
    const asked = RECORD_ACTIONS.map((action) => askMatrix({ collection, action, callers, ids: [record] }));
    return Promise.all(asked);
  };
  const answer = useAnswer(`${collection} ${record} ${callers}`, ask);
  return (
    <section>
      <h2>
        {wording.record} <code>{record}</code>
      </h2>
      <Answered answer={answer}>
        {(rows) => (
          <ScrollTable
            label={`${wording.record} ${record}`}
            class="matrix"
            titles={[wording.caller, ...RECORD_ACTIONS]}
          >
            {callers.map((name, i) => (
              <tr key={name}>
                <th scope="row">{callerName(name)}</th>
                {rows.map((each, k) => {
                  const outcome = each[i]!.outcomes[0]!;
                  return (
                    <td key={RECORD_ACTIONS[k]}>
                      <span class={`cell ${outcome}`}>{wording.outcomes[outcome]}</span>
                    </td>
                  );
                })}
              </tr>
            ))}
          </ScrollTable>
        )}
      </Answered>
    </section>
  );
}
