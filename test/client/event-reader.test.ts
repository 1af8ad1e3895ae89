/** The client reads server-sent events as another parser does, however their bytes are divided. */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { expect, test } from 'vitest';
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
