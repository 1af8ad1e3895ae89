/** The records of a search, a page after the other. A newer search drops the answers of an older one. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { collectionNamed, noteProblem } from '../../app/session-state.ts';
import { viewedCaller } from '../../app/viewed-caller.ts';
import {
  afterEvent,
  askedFor,
  type FoundRecords,
  NOTHING_FOUND,
  withFirstPage,
  withNextPage,
  withProblem,
} from './found-records.ts';
import { onRecordEvent, type RecordEvent } from './record-events.ts';
import { fetchPage, type RecordSearch } from './record-query.ts';
import { recordsSeenBy } from './viewed-records.ts';

export interface RecordPages extends FoundRecords {
  readonly loadMore: () => void;
  /** Asks once more for the page that failed. */
  readonly retry: () => void;
  readonly reload: () => void;
}

export function useRecordPages(search: RecordSearch): RecordPages {
  const [found, setFound] = useState(NOTHING_FOUND);
  const [round, setRound] = useState(0);
  const current = useRef(0);
  const isFetching = useRef(false);
  /** The cursor of the newest question. */
  const asked = useRef<string | null>(null);
  const viewed = viewedCaller.value;
  const question = JSON.stringify([search.filter, viewed]);
  const load = async (cursor: string | null): Promise<void> => {
    const own = current.current;
    isFetching.current = true;
    asked.current = cursor;
    setFound((now) => askedFor(now, cursor));
    try {
      const { data, page } = await fetchPage(search, (name) => collectionNamed(name)?.title, cursor);
      const records = viewed === '' ? data : await recordsSeenBy(viewed, { ...search, action: 'list' }, data);
      if (own !== current.current) return;
      const next = { question, records, cursor: page.next_cursor };
      setFound((now) => (cursor === null ? withFirstPage(next) : withNextPage(now, next)));
    } catch (error) {
      if (own !== current.current) return;
      const problem = noteProblem(error);
      setFound((now) => withProblem(now, question, problem));
    }
    isFetching.current = false;
  };
  const { collection, columns, filter, sort } = search;
  const take = (event: RecordEvent): void => {
    if (event.collection !== collection.name) return;
    if (event.kind === 'created') setRound((before) => before + 1);
    else setFound((before) => ({ ...before, records: afterEvent(before.records, event) }));
  };
  useEffect(() => onRecordEvent(take), [collection.name]);
  useEffect(() => {
    current.current++;
    if (collection.can.list) void load(null);
    return () => {
      current.current++;
    };
  }, [collection.name, columns.map(({ name }) => name).join(), filter, sort, round, viewed]);
  const loadOnce = (cursor: string | null): void => {
    if (!isFetching.current) void load(cursor);
  };
  return {
    ...found,
    loadMore: () => {
      if (found.cursor !== null && found.problem === undefined) loadOnce(found.cursor);
    },
    retry: () => loadOnce(asked.current),
    reload: () => setRound((before) => before + 1),
  };
}
