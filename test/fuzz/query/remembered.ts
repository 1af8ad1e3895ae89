/**
 * Statements of remembered plans: requests of many callers share a memory of plans, and each sends the same statements,
 * text and parameters, as a service that has planned no page before.
 */
import type { Database } from '../../../src/database/contract.ts';
import type { Branch } from '../../../src/policy/branch.ts';
import type { AccessContext } from '../../../src/records/access-context.ts';
import type { ListRequest } from '../../../src/records/page/page-plan.ts';
import type { ChoosesWay } from '../../../src/records/page/page-question.ts';
import type { Sql } from '../../../src/sql.ts';
import { watchedReads } from '../../support/watched-reads.ts';
import { fill, PLAIN, randomSchema, readAll } from '../doors/doors-world.ts';
import { withKeys } from '../doors/keyed-schema.ts';
import { makeOwned, withOwned } from '../doors/owned-schema.ts';
import { withReferences } from '../doors/referring-schema.ts';
import { Random } from '../random.ts';
import { FuzzCaller, type StockedWorld } from './caller.ts';
import { aroundDifference } from './difference.ts';
import { OptionMaker, STATISTICS, sortOf } from './options.ts';
import { indexed } from './pages.ts';
import type { QueryDoors } from './store-modules.ts';

export interface RememberedCounts {
  compared: number;
  /** Different texts among those that were compared: a memory that makes every plan anew would hide a wrong shape. */
  readonly texts: Set<string>;
}
export const noRememberedCounts = (): RememberedCounts => ({ compared: 0, texts: new Set() });
interface RememberedRun {
  readonly doors: QueryDoors;
  readonly seed: number;
  readonly counts: RememberedCounts;
  /** Callers of a world. Default 8. */
  readonly callers?: number;
}

const ROWS = 6;
const CALLERS = 8;
const QUESTIONS = 6;
/** Requests of each question, by callers of the same rules. */
const REQUESTS = 4;

const lastOf = (branch: Branch): Branch => branch.alternatives.at(-1) ?? branch;
const WAYS: readonly ChoosesWay[] = [
  () => undefined,
  ({ branches }) => branches && { kind: 'branches', branches },
  ({ branches }) => branches && { kind: 'branches', branches: branches.map(lastOf), walk: 2 },
];

/** Lists the pages of random questions. Returns the first difference in full; undefined if there is none. */
export async function runRemembered(number: number, db: Database, run: RememberedRun): Promise<string | undefined> {
  const found = await differenceInWorld(number, db, run);
  if (found === undefined) return undefined;
  return `DISAGREEMENT: a remembered plan sends other statements: ${found}\n  again       seed ${run.seed}, world ${number} of the remembered plans`;
}

async function differenceInWorld(number: number, db: Database, run: RememberedRun): Promise<string | undefined> {
  const { doors, seed, counts } = run;
  const random = new Random((seed * 1_000_033 + number * 7_907) >>> 0);
  const { schema } = doors.parseSchema(
    indexed(withOwned(withReferences(withKeys(randomSchema(random), PLAIN, random), random), PLAIN, random), random),
  );
  if (schema === undefined) throw new Error('the schema of the fuzz has errors');
  await makeOwned({ doors, schema, db }, random);
  await doors.applyMigration(db, schema);
  await fill({ doors, schema, db }, random, ROWS);
  const world: StockedWorld = { doors, stocked: { doors, schema, db }, data: await readAll({ doors, schema, db }) };
  const sent: Sql[] = [];
  const watched = watchedReads(db, (statement) => sent.push(statement));
  const recordsOf = (way: number) =>
    doors.createRecords(watched, schema, { choosesWay: WAYS[way]!, statisticsOf: STATISTICS[way]! });
  const remembered = WAYS.map((_, way) => recordsOf(way));
  const linesSent = async (records: ReturnType<typeof recordsOf>, access: AccessContext, request: ListRequest) => {
    sent.length = 0;
    const { nextCursor } = await records.list(access, request);
    return { lines: sent.map(lineOf).toSorted(), nextCursor };
  };
  for (const { caller, body } of questionsOf(world, random, run.callers ?? CALLERS)) {
    const way = random.below(WAYS.length);
    for (let i = 0; i < REQUESTS; i++) {
      const access = caller.access(i === 0 || random.chance(0.3) ? undefined : caller.randomRequest());
      const limit = random.pick([1, 2, 3, 10, 20]);
      const offset = random.pick([0, 0, 0, 2, 9]);
      const request = doors.queryRequestOf({ ...body, offset, limit }, schema, caller.collection);
      const found = await linesSent(remembered[way]!, access, request).catch(codeOf);
      const fresh = await linesSent(recordsOf(way), access, request).catch(codeOf);
      // The clock has decided, not the plan.
      if ([found, fresh].some(({ lines }) => lines[0] === 'query_too_expensive')) continue;
      counts.compared++;
      for (const { text } of sent) counts.texts.add(text);
      const [shown, wanted] = [found, fresh].map(({ lines }) => lines.join('\n'));
      if (shown !== wanted)
        return `${JSON.stringify(body)}, way ${way}\n  remembered  ${aroundDifference(shown!, wanted!)}\n  made anew   ${aroundDifference(wanted!, shown!)}`;
      if (found.nextCursor === undefined || !random.chance(0.5)) continue;
      const next = doors.queryRequestOf({ ...body, limit, cursor: found.nextCursor }, schema, caller.collection);
      const known = await linesSent(remembered[way]!, access, next).catch(codeOf);
      const anew = await linesSent(recordsOf(way), access, next).catch(codeOf);
      if ([known, anew].some(({ lines }) => lines[0] === 'query_too_expensive')) continue;
      counts.compared++;
      if (known.lines.join() !== anew.lines.join()) return `the page after ${JSON.stringify(body)}, way ${way}`;
    }
  }
  return undefined;
}

/**
 * A statement, as it is compared. Relations are expanded at a time: each statement has the ids of the records that were
 * found, and at its end what the answers before it have left of the budget.
 */
function lineOf({ text, params }: Sql): string {
  const shown = params.map((each) => ({
    ...each,
    value: Array.isArray(each.value) ? each.value.toSorted() : each.value,
  }));
  return JSON.stringify([text, text.includes('AS record (id') ? shown.slice(0, -1) : shown], null, 1);
}

/** A query may be refused for its cost, or for what its rules hide. */
const codeOf = (error: unknown) => {
  const { code } = error as { readonly code?: string };
  if (code === undefined) throw error;
  return { lines: [code], nextCursor: undefined };
};

/** The questions of all callers, in a random order. */
function questionsOf(world: StockedWorld, random: Random, callers: number) {
  const { schema } = world.stocked;
  const all = Array.from({ length: callers }, () => {
    const caller = new FuzzCaller(world, random);
    const standing = caller.standing(world.data);
    const options = new OptionMaker(caller, standing, { schema, random });
    return Array.from({ length: QUESTIONS }, () => {
      const filter = random.chance(0.3) ? undefined : caller.filter(caller.collection.name);
      const sort = random.chance(0.8) ? [] : sortOf(caller.collection, { schema, random });
      const body = {
        ...(random.chance(0.15) ? options.make().body : {}),
        ...(filter && { filter: filter.text, params: filter.params }),
        sort,
        count: random.pick(['none', 'none', 'none', 'exact', 'estimated']),
        capabilities: random.chance(0.1),
      };
      return { caller, body };
    });
  });
  return random.shuffled(all.flat());
}
