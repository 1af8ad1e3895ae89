/** The client reads server-sent events as another parser does, however their bytes are divided. */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { afterEach, expect, test, vi } from 'vitest';
import { type Change, createClient } from '../../src/client/client.ts';

const EVENTS = [
  'retry: 1000\n\n',
  ':\n\n',
  ': a comment\n\n',
  'id: p1\nevent: ready\ndata: {"feed":"f1"}\n\n',
  'id: p2\nevent: enter\ndata: {"feed":"f1","record":{"id":"1","title":"żółć 🌍: a, data: b"}}\n\n',
  ':\nid: p3\n\n',
  'id:p4\nevent:change\ndata:{"feed":"f1","record":{"id":"1","title":" two  spaces \\n"}}\n\n',
  'id: p4\nevent: change\ndata: {"feed":"f1","record":{"id":"1","title":"the same event again"}}\n\n',
  'id: p5\nevent: leave\ndata: {"feed":"f1","id":"1"}\n\n',
  'id: p6\nevent: reset\ndata: {"feed":"f1","reason":"related"}\n\n',
  'id: p7\nevent: enter\ndata: {"feed":"f1","record":{"id":"cut',
].join('');

function parsed(text: string): readonly unknown[] {
  const events: unknown[] = [];
  const onEvent = ({ id, event, data }: EventSourceMessage): void => {
    const { feed: _, ...rest } = JSON.parse(data) as { readonly feed: string };
    events.push({ type: event, ...rest, position: id });
  };
  createParser({ onEvent }).feed(text);
  return events;
}

function inChunks(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return;
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

test.each([1, 2, 3, 7, 64, 10_000])('the reader takes chunks of %i bytes', async (size) => {
  const client = createClient('http://events.example', {
    fetch: async () => new Response(inChunks(new TextEncoder().encode(EVENTS), size)),
  });
  const end = new AbortController();
  const seen: Change<object>[] = [];
  for await (const change of client.collection('notes').changes({ signal: end.signal })) {
    seen.push(change);
    if (change.type === 'reset') end.abort();
  }
  const all = parsed(EVENTS);
  expect(all.map((each) => (each as { position: string }).position)).toEqual(['p1', 'p2', 'p4', 'p4', 'p5', 'p6']);
  // The client gives no event twice in a row.
  expect(seen).toEqual(all.filter((_, i) => i !== 3));
});

afterEach(() => {
  vi.useRealTimers();
});

test('a stream that the service ends is opened again after the time that it names, spread by a half, and 30 s at most', async () => {
  vi.useFakeTimers();
  let opened = 0;
  const ready = 'id: p1\nevent: ready\ndata: {"feed":"f1"}\n\n';
  const client = createClient('http://events.example', {
    fetch: async () => new Response(`retry: 1000\n\n${opened++ === 0 ? ready : ''}retry: 3000\n\n`),
  });
  const changes = client.collection('notes').changes();
  const first = changes.next();
  await vi.advanceTimersByTimeAsync(10);
  expect(await first).toMatchObject({ value: { type: 'ready' } });
  const openedAfter = async (ms: number): Promise<number> => {
    await vi.advanceTimersByTimeAsync(ms);
    return opened;
  };
  expect([await openedAfter(2_980), await openedAfter(1_520)]).toEqual([1, 2]);
  // Streams without an event double the time.
  expect([await openedAfter(4_480), await openedAfter(4_520)]).toEqual([2, 3]);
  await openedAfter(120_000);
  const before = opened;
  expect([await openedAfter(30_000), await openedAfter(30_000)]).toEqual([before + 1, before + 2]);
});
