// @module-tag long
/** The servers that race answer alike, so that what is measured is the same work, in one process and in two. The bench asks the same of its own. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { DocumentsWorld, type WorldOptions } from '../../bench/support/documents-world.ts';
import { parentOf, processorTime, residentMiB } from '../../bench/support/processor-time.ts';
import {
  byId,
  create,
  createInTeam,
  fewMatch,
  ownOrPublished,
  ownOrTeam,
  patch,
  patchOfTeam,
} from '../../bench/support/race/courses.ts';
import { mustAnswerAlike } from '../../bench/support/race/race.ts';
import { MAIN } from '../support/process.ts';

const COURSES = [ownOrPublished, ownOrTeam, fewMatch, byId, create, createInTeam, patch, patchOfTeam];
const ROWS = 1_000;

const childrenOf = (pid: number): readonly number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((other) => Number.isInteger(other) && parentOf(other) === pid);

function suite(name: string, options: WorldOptions, names: readonly string[]): void {
  describe(name, () => {
    let world: DocumentsWorld;
    beforeAll(async () => {
      world = await DocumentsWorld.open(options);
    });
    afterAll(() => world?.close());

    test('all servers race', () => {
      expect(world.contenders.map((contender) => contender.name)).toEqual(names);
    });

    test.each(COURSES)('$title: all servers answer alike', async (course) => {
      await mustAnswerAlike(world, course);
    });

    if (process.platform !== 'linux') return;
    test('the processor time of a server sums its processes', () => {
      for (const { pid, processes } of world.contenders) {
        const children = childrenOf(pid);
        expect(children).toHaveLength(processes === 1 ? 0 : processes);
        const sum = (of: (pid: number) => number) => children.reduce((all, child) => all + of(child), 0);
        expect(residentMiB(pid)).toBeGreaterThan(sum(residentMiB));
        expect(processorTime(pid)).toBeGreaterThanOrEqual(sum(processorTime));
      }
    });

    test('all processes end with the world', async () => {
      const pids = world.contenders.flatMap(({ pid }) => [pid, ...childrenOf(pid)]);
      await world.close();
      await expect.poll(() => pids.filter(isAlive), { timeout: 10_000 }).toEqual([]);
    });
  });
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'));
  } catch {
    return false;
  }
}

const common = { rows: ROWS, main: MAIN };
describe.skipIf(inject('postgresUrl') === '')('PostgreSQL', () => {
  const names = ['bylaw', 'bylaw-2', 'usual', 'usual-2', 'best', 'best-2'];
  suite('in one process and in two', { ...common, processes: 2 }, names);
});
