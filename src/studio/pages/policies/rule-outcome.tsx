/** The outcome of the rules for one caller, shown beside them, with the SQL and its plan; for a cell of the table, its trace. */
import type { JSX } from 'preact';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { askedAs } from '../../data/asked-caller.ts';
import { callerName } from '../../data/caller-names.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { askWhy, type WhyQuestion } from '../../data/why-question.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { ExplanationView } from '../why/explanation-view.tsx';
import type { DraftedSet } from './drafted-set.ts';
import { dataOf } from './made-up-data.ts';
import type { RuleSet } from './rule-sets.ts';
import { tableCallers } from './table-subjects.tsx';
import { ASK_AFTER_MS } from './truth-table.tsx';

interface RuleOutcomeProps {
  readonly collection: ServedCollection;
  readonly set: RuleSet;
  readonly drafted: DraftedSet;
}

export function RuleOutcome({ collection, set, drafted }: RuleOutcomeProps): JSX.Element {
  const { query } = address.value;
  const callers = tableCallers();
  const given = query.get('caller') ?? '';
  const caller = callers.includes(given) ? given : callers[0]!;
  const cell = query.get('cell') ?? '';
  const isCreate = set.action === 'create';
  const question: WhyQuestion = {
    collection: collection.name,
    action: set.action,
    record: isCreate ? '' : cell,
    as: askedAs(caller),
  };
  const { rules, isBroken } = drafted;
  const more = {
    ...(isCreate && cell !== '' && { data: dataOf(cell) }),
    ...(rules !== undefined && { rules, ...(set.member !== undefined && { member: set.member }) }),
  };
  const answer = useAnswer(JSON.stringify([question, more]), () => askWhy(question, more), {
    afterMs: ASK_AFTER_MS,
    isAsked: !isBroken,
  });
  return (
    <section class="rule-outcome" aria-label={wording.outcomeFor}>
      <div class="outcome-head">
        <label>
          {wording.outcomeFor}
          <select value={caller} onChange={(event) => changeQuery({ caller: event.currentTarget.value }, 'replace')}>
            {callers.map((each) => (
              <option key={each} value={each}>
                {callerName(each)}
              </option>
            ))}
          </select>
        </label>
        {cell !== '' && (
          <button type="button" aria-keyshortcuts="x" onClick={() => changeQuery({ cell: undefined })}>
            {wording.anyCell}
          </button>
        )}
        <a
          class="button"
          href={pathTo('why', question.collection, { ...question, collection: undefined })}
          aria-keyshortcuts="w"
        >
          {wording.why}
        </a>
      </div>
      {isBroken && <p class="hint">{wording.mendFirst}</p>}
      <Answered answer={answer} isAsked={!isBroken}>
        {(explanation) => <ExplanationView question={question} explanation={explanation} member={set.member} />}
      </Answered>
    </section>
  );
}
