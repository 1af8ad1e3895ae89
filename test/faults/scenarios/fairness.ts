/** An attack beside an ordinary member must cost the others nothing, on both databases: `npm run bench -- fairness` in short. */
import assert from 'node:assert/strict';
import { ATTACKS } from '../../../bench/crowd/attacks.ts';
import { pause } from '../../../bench/crowd/member.ts';
import { GOALS, noticedBeside, refusalsOf } from '../../../bench/crowd/noticed.ts';
import { type CrowdKind, CrowdWorld } from '../../../bench/crowd/world.ts';
import { residentMiB } from '../../../bench/support/processor-time.ts';
import type { Scenario } from '../scenario.ts';

const DOCUMENTS = 20_000;
/** Seconds of a load, for an attack. */
const SHARE_OF_LOAD = 0.5;
/** The bench holds the goals, on a machine of its own; here only a member who waits behind the attacker is late. */
const MOST_MS = 5_000;
/** Milliseconds until the memory of an attack has come back. */
const MOST_HELD_MS = 5_000;

const fairness = (kind: CrowdKind): Scenario => ({
  name: `fairness-${kind}`,
  holds: `no attack of one member has another one refused, waiting for ${MOST_MS / 1_000} s, or the memory grow for good`,
  async run(world) {
    const crowd = await CrowdWorld.open({ kind, documents: DOCUMENTS, databaseUrl: world.postgres.url });
    world.afterwards(() => crowd.close());
    const seconds = (world.loadMs / 1_000) * SHARE_OF_LOAD;
    await noticedBeside(crowd, seconds);
    const { afterMiB: calm } = await noticedBeside(crowd, seconds);
    const { moreMiB } = GOALS[kind];
    for (const attack of ATTACKS) {
      const before = residentMiB(crowd.pid);
      const noticed = await noticedBeside(crowd, seconds, attack);
      assert.equal(refusalsOf(noticed), 'none', attack.name);
      assert(noticed.p99 <= MOST_MS, `${attack.name}: p99 ${noticed.p99.toFixed(0)} ms`);
      const more = noticed.mostMiB - before;
      assert(more <= moreMiB, `${attack.name}: ${more.toFixed(0)} MiB more than before it`);
      const end = performance.now() + MOST_HELD_MS;
      while (residentMiB(crowd.pid) > calm + moreMiB && performance.now() < end) await pause(100);
      const kept = residentMiB(crowd.pid) - calm;
      assert(kept <= moreMiB, `${attack.name}: ${kept.toFixed(0)} MiB above calm for good`);
    }
  },
});

export const FAIRNESS_SCENARIOS: readonly Scenario[] = [fairness('postgres'), fairness('embedded')];
