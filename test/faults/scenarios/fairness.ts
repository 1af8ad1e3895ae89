/** An attack beside an ordinary member must cost the others nothing, on both databases: `npm run bench -- fairness` in short. */
import assert from 'node:assert/strict';
import { ATTACKS } from '../../../bench/crowd/attacks.ts';
import { GOALS, noticedBeside, refusalsOf } from '../../../bench/crowd/noticed.ts';
import { type CrowdKind, CrowdWorld } from '../../../bench/crowd/world.ts';
import type { Scenario } from '../scenario.ts';

const DOCUMENTS = 20_000;
/** Seconds of a load, for an attack. */
const SHARE_OF_LOAD = 0.5;
/** The bench holds the goals, on a machine of its own; here only a member who waits behind the attacker is late. */
const MOST_MS = 5_000;
/** In so short a run, the buffers of an embedded engine fill during the attacks; answers without a budget took 2 GiB. */
const TIMES_GOAL = { postgres: 1, embedded: 2 } as const;

const fairness = (kind: CrowdKind): Scenario => ({
  name: `fairness-${kind}`,
  holds: `no attack of one member has another one refused, waiting for ${MOST_MS / 1_000} s, or the memory grow for good`,
  async run(world) {
    const crowd = await CrowdWorld.open({ kind, documents: DOCUMENTS, databaseUrl: world.postgres.url });
    world.afterwards(() => crowd.close());
    const seconds = (world.loadMs / 1_000) * SHARE_OF_LOAD;
    await noticedBeside(crowd, seconds);
    const calm = await noticedBeside(crowd, seconds);
    for (const attack of ATTACKS) {
      const noticed = await noticedBeside(crowd, seconds, attack);
      assert.equal(refusalsOf(noticed), 'none', attack.name);
      assert(noticed.p99 <= MOST_MS, `${attack.name}: p99 ${noticed.p99.toFixed(0)} ms`);
      const more = noticed.mostMiB - calm.afterMiB;
      assert(more <= GOALS[kind].moreMiB * TIMES_GOAL[kind], `${attack.name}: ${more.toFixed(0)} MiB above calm`);
    }
  },
});

export const FAIRNESS_SCENARIOS: readonly Scenario[] = [fairness('postgres'), fairness('embedded')];
