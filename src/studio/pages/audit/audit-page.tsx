/** The audit trail of accounts, the newest event first. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { noteProblem } from '../../app/session-state.ts';
import { transport } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import { wording } from '../../en.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';

interface TrailEvent {
  readonly id: string;
  readonly at: string;
  readonly event: string;
  readonly user_id: string | null;
  readonly email: string | null;
  readonly ip: string | null;
  readonly detail: object | null;
}

const EVENTS_OF_A_PAGE = 50;

interface TrailFilter {
  readonly user: string;
  readonly event: string;
}

async function fetchEvents({ user, event }: TrailFilter, before: string | undefined): Promise<readonly TrailEvent[]> {
  const query = { user: user || undefined, event: event || undefined, before, limit: EVENTS_OF_A_PAGE };
  return (await transport.json<{ readonly data: readonly TrailEvent[] }>('/api/_audit', { query })).data;
}

/** The events so far, and a way to more of them. */
function useTrail(filter: TrailFilter) {
  const [events, setEvents] = useState<readonly TrailEvent[]>();
  const [hasMore, setMore] = useState(false);
  const [problem, setProblem] = useState<ShownProblem>();
  const load = async (before: readonly TrailEvent[]): Promise<void> => {
    setProblem(undefined);
    try {
      const next = await fetchEvents(filter, before.at(-1)?.id);
      setEvents([...before, ...next]);
      setMore(next.length === EVENTS_OF_A_PAGE);
    } catch (error) {
      setProblem(noteProblem(error));
    }
  };
  useEffect(() => void load([]), [filter.user, filter.event]);
  return { events, hasMore, problem, loadMore: () => load(events ?? []) };
}

export function AuditPage(): JSX.Element {
  const { query } = address.value;
  const filter = { user: query.get('user') ?? '', event: query.get('event') ?? '' };
  const { events, hasMore, problem, loadMore } = useTrail(filter);
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.audit}</h1>
      <TrailFilterForm filter={filter} />
      {problem !== undefined && <ProblemNote problem={problem} onRetry={() => void loadMore()} />}
      {events === undefined && problem === undefined && <p class="loading">{wording.loading}</p>}
      {events?.length === 0 && <p class="empty">{wording.noEvents}</p>}
      {events !== undefined && events.length > 0 && <EventTable events={events} />}
      {hasMore && (
        <button type="button" aria-keyshortcuts="l" onClick={() => void loadMore()}>
          {wording.olderEvents}
        </button>
      )}
    </main>
  );
}

function TrailFilterForm({ filter }: { readonly filter: TrailFilter }): JSX.Element {
  return (
    <form
      class="question"
      role="search"
      key={`${filter.user} ${filter.event}`}
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        changeQuery({ user: String(given.get('user')).trim(), event: String(given.get('event')).trim() });
      }}
    >
      <label>
        {wording.event}
        <input name="event" aria-keyshortcuts="/" placeholder="login_failed" value={filter.event} />
      </label>
      <label>
        {wording.userId}
        <input name="user" value={filter.user} />
      </label>
      <button type="submit" aria-keyshortcuts="Enter">
        {wording.applyFilter}
      </button>
    </form>
  );
}

function EventTable({ events }: { readonly events: readonly TrailEvent[] }): JSX.Element {
  const titles = [wording.at, wording.event, wording.user, wording.from, wording.detail];
  return (
    <ScrollTable label={wording.audit} class="events" titles={titles}>
      {events.map(({ id, at, event, email, user_id: user, ip, detail }) => (
        <tr key={id}>
          <td>
            <time dateTime={at} title={at}>
              {new Date(at).toLocaleString()}
            </time>
          </td>
          <td>
            <code class="event">{event}</code>
          </td>
          <td>
            {user !== null && (
              <a href={pathTo('audit', undefined, { user })}>
                <bdi>{email ?? user}</bdi>
              </a>
            )}
          </td>
          <td>{ip}</td>
          <td>{detail !== null && <code>{JSON.stringify(detail)}</code>}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}
