/** The records of a search, a page after the other. A newer search drops the answers of an older one. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { collectionNamed, noteProblem } from '../../app/session-state.ts';
import { viewedCaller } from '../../app/viewed-caller.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import { afterEvent } from './found-records.ts';
import { onRecordEvent, type RecordEvent } from './record-events.ts';
import { fetchPage, type RecordSearch, type StudioRecord } from './record-query.ts';
import { recordsSeenBy } from './viewed-records.ts';

interface FoundRecords {
  readonly records: readonly StudioRecord[];
  /** `null` after the last page. */
  readonly cursor: string | null;
  readonly isLoading: boolean;
  readonly problem: ShownProblem | undefined;
}

const NOTHING: FoundRecords = { records: [], cursor: null, isLoading: true, problem: undefined };

export interface RecordPages extends FoundRecords {
  readonly loadMore: () => void;
  readonly reload: () => void;
}

export function useRecordPages(search: RecordSearch): RecordPages {
  const [found, setFound] = useState<FoundRecords>(NOTHING);
  const [round, setRound] = useState(0);
  const current = useRef(0);
  const isFetching = useRef(false);
  const viewed = viewedCaller.value;
  const load = async (before: FoundRecords): Promise<void> => {
    const own = current.current;
    isFetching.current = true;
    try {
      const { data, page } = await fetchPage(search, (name) => collectionNamed(name)?.title, before.cursor);
      const listed = viewed === '' ? data : await recordsSeenBy(viewed, { ...search, action: 'list' }, data);
      if (own !== current.current) return;
      const records = [...before.records, ...listed];
      setFound({ records, cursor: page.next_cursor, isLoading: false, problem: undefined });
    } catch (error) {
      if (own === current.current) setFound({ ...before, isLoading: false, problem: noteProblem(error) });
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
    setFound((before) => (before.records.length > 0 ? { ...before, isLoading: true } : NOTHING));
    if (collection.can.list) void load(NOTHING);
    return () => {
      current.current++;
    };
  }, [collection.name, columns.map(({ name }) => name).join(), filter, sort, round, viewed]);
  return {
    ...found,
    loadMore: () => {
      if (found.cursor !== null && !isFetching.current && found.problem === undefined) void load(found);
    },
    reload: () => setRound((before) => before + 1),
  };
}
