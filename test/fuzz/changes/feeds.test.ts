// @module-tag long
/** A few worlds of the fuzz of feeds; `npm run fuzz -- changes` is the long run. */

import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/database/open-database.ts';
import { KINDS, openKind, postgresUrl } from '../../support/store-world.ts';
import { ROOT } from '../policies/compiler.ts';
import { FarNode } from './far-node.ts';
import { loadFeedModules } from './feed-modules.ts';
import { FEED_POLICIES } from './feed-schema.ts';
import { FeedFuzz, policiesOf } from './run-feeds.ts';

/** Each database has some of the policies, and tables for no others. */
const STRIDE = 9;
const SEED = 11;

describe.each(KINDS)('the copies of subscribers on %s', (kind) => {
  it('equal their lists, and hold nothing that is hidden', async () => {
    const url = kind === 'embedded' ? undefined : await postgresUrl();
    const db = url === undefined ? await openKind(kind) : await openDatabase({ url });
    const policies = FEED_POLICIES.filter((_, i) => i % STRIDE === KINDS.indexOf(kind));
    const fuzz = await FeedFuzz.open(db, await loadFeedModules(), { url, policies });
    for (const n of policies.keys()) expect(await fuzz.run(n, SEED)).toBeUndefined();
    expect(fuzz.counts.events - fuzz.counts.resets).toBeGreaterThan(FEED_POLICIES.length);
    await fuzz.close();
    await db.close();
  });
});

it('reports a node that fails, and ends its streams', async () => {
  const node = await FarNode.open({
    url: 'postgres://postgres@127.0.0.1:1/none',
    root: ROOT.href,
    policies: ['true'],
    pages: undefined,
    auths: [],
  });
  const stream = await node.subscribe({ collection: 'items0', caller: 0 }, () => undefined);
  await stream.ended;
  await node.look();
  await node.close();
  expect(node.failures).toEqual([expect.stringContaining('the database cannot be reached')]);
});

it('has as many random policies as fixed ones, with walks, lists of the caller, quantifiers and negations', async () => {
  const policies = policiesOf(0, 11, await loadFeedModules());
  const made = policies.filter((policy) => !FEED_POLICIES.includes(policy)).join('\n');
  expect(policies).toHaveLength(2 * FEED_POLICIES.length);
  for (const form of [
    /@record\.\w+\.\w+/,
    /\(@request\.auth\.memberships/,
    /\b(any|none|all)\(/,
    /\bnot\b/,
    /ancestors\(/,
  ])
    expect(made).toMatch(form);
});
