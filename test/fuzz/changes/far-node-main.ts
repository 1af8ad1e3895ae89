/** The main file of a node in a process of its own: it serves the streams that its parent asks for. */

import type { FarAnswer, FarQuestion } from './far-node.ts';
import { callersOf } from './feed-caller.ts';
import { loadFeedModules } from './feed-modules.ts';
import { NearNode, type NodeStream } from './feed-node.ts';
import { feedSchema } from './feed-schema.ts';

const send = (answer: FarAnswer): void => void process.send?.(answer);
const streams = new Map<number, NodeStream>();
let node: NearNode | undefined;
let callers: ReturnType<typeof callersOf> = [];

async function open({ url, root, policies, pages, auths }: Extract<FarQuestion, { type: 'open' }>): Promise<void> {
  const modules = await loadFeedModules(new URL(root));
  const schema = modules.parseSchema(feedSchema(policies)).schema!;
  callers = callersOf(schema, auths, modules.decide);
  const db = await modules.openDatabase({ url, poolSize: 2, pipelines: 1 });
  // Its events may come after later writes.
  node = await NearNode.open(db, { modules, schema, callers, pages, still: () => undefined });
  send({ type: 'opened' });
}

async function take(question: FarQuestion): Promise<void> {
  switch (question.type) {
    case 'open':
      return open(question);
    case 'subscribe': {
      const { key, subscription } = question;
      const stream = await node!.subscribe(subscription, (event) => send({ type: 'event', key, event }));
      streams.set(key, stream);
      void stream.ended.then(() => send({ type: 'ended', key }));
      return;
    }
    case 'leave':
      streams.get(question.key)?.leave();
      streams.delete(question.key);
      return;
    case 'auth':
      callers[question.caller]!.become(question.auth);
      return;
    case 'wake':
      return node!.wake();
    case 'look':
      do {
        await node!.look();
        await new Promise((resolve) => setImmediate(resolve));
      } while ([...streams.values()].some(({ isBehind }) => isBehind) && node!.failures.length === 0);
      await node!.look();
      send({ type: 'looked', number: question.number, failures: node!.failures });
  }
}

process.on('message', (question: FarQuestion) => {
  take(question).catch((error: unknown) => send({ type: 'failed', error: String((error as Error).stack) }));
});
process.on('disconnect', () => process.exit());
