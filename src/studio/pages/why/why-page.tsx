/** Why a caller may or may not do something: a question in the address, and its answer leaf by leaf. */
import type { JSX } from 'preact';
import { address, goTo, pathTo } from '../../app/page-address.ts';
import { collectionNamed, schema } from '../../app/session-state.ts';
import { callerAskedAbout } from '../../app/viewed-caller.ts';
import { askWhy, WHY_ACTIONS, type WhyQuestion } from '../../data/why-question.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { ExplanationView } from './explanation-view.tsx';

export function WhyPage(): JSX.Element {
  const { subject, query } = address.value;
  const first = schema.value?.collections[0]?.name ?? '';
  const question: WhyQuestion = {
    collection: collectionNamed(subject)?.name ?? first,
    action: query.get('action') ?? 'read',
    record: query.get('record') ?? '',
    as: callerAskedAbout('as'),
  };
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.why}</h1>
      <p class="hint">{wording.whyHint}</p>
      <QuestionForm key={location.pathname + location.search} question={question} />
      {subject !== undefined && <WhyAnswer key={JSON.stringify(question)} question={question} />}
    </main>
  );
}

const textOfField = (form: FormData, name: string): string => String(form.get(name) ?? '').trim();

function QuestionForm({ question }: { readonly question: WhyQuestion }): JSX.Element {
  const { collections = [], roles = [] } = schema.value ?? {};
  const ask = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const [action, record, as] = ['action', 'record', 'as'].map((name) => textOfField(form, name));
    goTo(pathTo('why', textOfField(form, 'collection'), { action, record, as }));
  };
  return (
    <form class="question" onSubmit={ask}>
      <label>
        {wording.caller}
        <input name="as" aria-keyshortcuts="/" list="callers" placeholder={wording.callerHint} value={question.as} />
      </label>
      <datalist id="callers">
        <option value="guest" />
        {roles.map(({ name }) => (
          <option key={name} value={`role:${name}`} />
        ))}
      </datalist>
      <label>
        {wording.action}
        <select name="action" value={question.action}>
          {WHY_ACTIONS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        {wording.collection}
        <select name="collection" value={question.collection}>
          {collections.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        {wording.recordId}
        <input name="record" placeholder={wording.anyRecord} value={question.record} />
      </label>
      <button type="submit" class="primary" aria-keyshortcuts="Control+Enter">
        {wording.ask}
      </button>
    </form>
  );
}

function WhyAnswer({ question }: { readonly question: WhyQuestion }): JSX.Element {
  const answer = useAnswer(JSON.stringify(question), () => askWhy(question));
  return (
    <Answered answer={answer}>
      {(explanation) => <ExplanationView question={question} explanation={explanation} />}
    </Answered>
  );
}
