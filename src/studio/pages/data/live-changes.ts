/** The changes of the shown collection, as they are committed. A collection without a feed is not followed. */
import { useEffect, useState } from 'preact/hooks';
import { viewedCaller } from '../../app/viewed-caller.ts';
import { service } from '../../data/api-service.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { newIdsAfter, noteRecord } from './record-events.ts';
import type { StudioRecord } from './record-query.ts';

interface LiveChanges {
  /** Records that came and are not among the shown ones. */
  readonly newCount: number;
  readonly forgetNew: () => void;
}

/** Changes of shown records become events of the page. */
export function useLiveChanges(
  { name, changes: hasFeed }: ServedCollection,
  filter: string,
  shown: readonly StudioRecord[],
): LiveChanges {
  // The feed is that of the signed-in user.
  const isPaused = viewedCaller.value !== '';
  const [newIds, setNewIds] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    setNewIds(new Set());
    if (!hasFeed || isPaused) return;
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      const feed = service.collection(name).changes({ ...(filter !== '' && { filter }), signal: stop.signal });
      for await (const change of feed) {
        if (change.type === 'leave') noteRecord({ kind: 'deleted', collection: name, id: String(change.id) });
        if (change.type === 'enter' || change.type === 'change')
          noteRecord({ kind: 'updated', collection: name, record: change.record as StudioRecord });
        setNewIds((before) => newIdsAfter(before, change));
      }
    };
    // A filter that no feed takes leaves the page as it is: Reload still works.
    follow().catch(() => undefined);
    return () => stop.abort();
  }, [name, filter, hasFeed, isPaused]);
  const ids = newIds.size === 0 ? undefined : new Set(shown.map(({ id }) => String(id)));
  return { newCount: ids === undefined ? 0 : newIds.difference(ids).size, forgetNew: () => setNewIds(new Set()) };
}
