/**
 * `bylaw/events`: the changes of a collection for a program that runs by itself. Each event comes at least once, over
 * restarts of the program and of the service.
 */
import { open, readFile, rename } from 'node:fs/promises';
import { type Change, createClient, type FeedQuery } from '../client/client.ts';

/** An event of a collection, as the list of the key shows it. */
export type Event<R> =
  | { readonly type: 'enter' | 'change'; readonly record: R }
  | { readonly type: 'leave'; readonly id: string | number }
  /** List the records: events may be missing, or the first run begins (`start`). Other reasons are those of feeds. */
  | { readonly type: 'reset'; readonly reason: string };

/** The place of a position between two runs of the program. */
export interface PositionStore {
  /** Undefined: the first run. */
  readonly load: () => Promise<string | undefined>;
  /** Resolves when the position will be found again, also if the program ends at once. */
  readonly save: (position: string) => Promise<void>;
}

export interface EventsOptions extends Omit<FeedQuery, 'since'> {
  /** The address of the service, such as `https://api.example.com`. */
  readonly url: string;
  /** An API key: `bylaw_…`. */
  readonly key: string;
  readonly collection: string;
  /** The events that are given, besides `reset`. Default: all. */
  readonly events?: readonly ('enter' | 'change' | 'leave')[];
  /** The path of a file of this program's own, or a store. */
  readonly position: string | PositionStore;
  /** Ends the iterator. */
  readonly signal?: AbortSignal;
}

/** The first run begins with a `reset`, now; a later one where the last one ended. Throws BylawError where the service refuses the feed. */
export async function* events<R = Readonly<Record<string, unknown>>>({
  url,
  key,
  collection,
  events: wanted = ['enter', 'change', 'leave'],
  position,
  ...query
}: EventsOptions): AsyncGenerator<Event<R>> {
  const store = typeof position === 'string' ? fileStore(position) : position;
  const since = await store.load();
  let saving = Promise.resolve();
  const onPosition = (at: string): void => {
    saving = saving.then(() => store.save(at));
    // It is awaited with the next event.
    saving.catch(() => undefined);
  };
  let isFirst = since === undefined;
  const feed = createClient(url, { key }).collection(collection);
  for await (const change of feed.changes({ ...query, ...(since === undefined ? {} : { since }), onPosition })) {
    const event = isFirst && change.type === 'ready' ? START : eventOf(change as Change<R>);
    isFirst = false;
    if (event !== undefined && (event.type === 'reset' || wanted.includes(event.type))) yield event;
    await saving;
    await store.save(change.position);
  }
}

const START = { type: 'reset', reason: 'start' } as const;

function eventOf<R>({ position: _, ...change }: Change<R>): Event<R> | undefined {
  return change.type === 'ready' ? undefined : (change as Event<R>);
}

/** Written whole or not at all. */
function fileStore(path: string): PositionStore {
  return {
    async load() {
      try {
        return (await readFile(path, 'utf8')).trim() || undefined;
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async save(position) {
      const file = await open(`${path}.new`, 'w');
      try {
        await file.writeFile(`${position}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(`${path}.new`, path);
    },
  };
}
