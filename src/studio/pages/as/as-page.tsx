/** "View as": what another caller may do with the records of a collection. */
import type { JSX } from 'preact';
import { address, goTo, pathTo, VIEWED_KEY } from '../../app/page-address.ts';
import { collectionNamed, schema } from '../../app/session-state.ts';
import { viewedCaller } from '../../app/viewed-caller.ts';
import { service } from '../../data/api-service.ts';
import { askedAs } from '../../data/asked-caller.ts';
import { askMatrix, type CellOutcome } from '../../data/matrix-question.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { recordTitleOf } from '../data/form/reference-box.tsx';
import type { StudioRecord } from '../data/record-query.ts';

const VIEWED_ACTIONS = ['list', 'read', 'update', 'delete'] as const;
const MOST_RECORDS = 50;

export function AsPage(): JSX.Element {
  const { subject } = address.value;
  const collection = collectionNamed(subject) ?? schema.value?.collections[0];
  const as = viewedCaller.value;
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.asAnother}</h1>
      <p class="hint">{wording.asHint}</p>
      <CallerForm key={location.search + location.pathname} collection={collection?.name ?? ''} as={as} />
      {as !== '' && collection !== undefined && (
        <>
          <p>
            <a href={pathTo('data', collection.name)}>{wording.openDataAs}</a>
          </p>
          <CallerRecords key={`${collection.name} ${as}`} collection={collection} as={as} />
        </>
      )}
    </main>
  );
}

function CallerForm({ collection, as }: { readonly collection: string; readonly as: string }): JSX.Element {
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        goTo(pathTo('as', String(given.get('collection')), { [VIEWED_KEY]: String(given.get('as')).trim() }));
      }}
    >
      <label>
        {wording.caller}
        <input
          name="as"
          aria-keyshortcuts="/"
          list="as-callers"
          required
          placeholder={wording.addCallerHint}
          defaultValue={as}
        />
      </label>
      <datalist id="as-callers">
        <option value="guest" />
        {(schema.value?.roles ?? []).map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <label>
        {wording.collection}
        <select name="collection" value={collection}>
          {(schema.value?.collections ?? []).map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <button type="submit" class="primary" aria-keyshortcuts="Control+Enter">
        {wording.viewAs}
      </button>
    </form>
  );
}

interface CallerRecordsProps {
  readonly collection: ServedCollection;
  readonly as: string;
}
interface JudgedRecords {
  readonly records: readonly StudioRecord[];
  /** Lists by action, with an outcome for each record. */
  readonly outcomes: Readonly<Record<string, readonly CellOutcome[]>>;
}

async function judgedRecords({ collection, as }: CallerRecordsProps): Promise<JudgedRecords> {
  const { data } = await service.collection(collection.name).query({ limit: MOST_RECORDS, sort: ['-id'] });
  const records = data as readonly StudioRecord[];
  if (records.length === 0) return { records, outcomes: {} };
  const ids = records.map(({ id }) => id);
  const asked = VIEWED_ACTIONS.map(async (action) => {
    const [row] = await askMatrix({ collection: collection.name, action, callers: [as], ids });
    return [action, row!.outcomes] as const;
  });
  return { records, outcomes: Object.fromEntries(await Promise.all(asked)) };
}

function CallerRecords({ collection, as }: CallerRecordsProps): JSX.Element {
  const answer = useAnswer(`${collection.name} ${as}`, () => judgedRecords({ collection, as }));
  return (
    <Answered answer={answer}>
      {(judged) =>
        judged.records.length === 0 ? (
          <p class="empty">{wording.noRecords}</p>
        ) : (
          <JudgedTable collection={collection} as={as} judged={judged} />
        )
      }
    </Answered>
  );
}

interface JudgedTableProps extends CallerRecordsProps {
  readonly judged: JudgedRecords;
}

function JudgedTable({ collection, as, judged: { records, outcomes } }: JudgedTableProps): JSX.Element {
  const whyOf = (action: string, id: string | number): string =>
    pathTo('why', collection.name, { action, record: String(id), as: askedAs(as) });
  return (
    <ScrollTable label={collection.name} class="matrix" titles={[wording.record, ...VIEWED_ACTIONS]}>
      {records.map((record, i) => (
        <tr key={record.id}>
          <th scope="row">
            <bdi>{recordTitleOf(collection, record)}</bdi>
          </th>
          {VIEWED_ACTIONS.map((action) => {
            const outcome = outcomes[action]![i]!;
            return (
              <td key={action}>
                <a href={whyOf(action, record.id)}>
                  <span class={`cell ${outcome}`}>{wording.outcomes[outcome]}</span>
                </a>
              </td>
            );
          })}
        </tr>
      ))}
    </ScrollTable>
  );
}
