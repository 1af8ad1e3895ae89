/**
 * `npm run fuzz -- solver --seconds 60 --seed 1`: random pairs of policies. A verdict of the solver must agree with every small world, and
 * the interpreter must decide the worlds that the solver shows as the solver says.
 */
import { parse } from '../../../grammar/parser.ts';
import { print } from '../../../grammar/printer.ts';
import type { Expr } from '../../../grammar/syntax.ts';
import { Budget } from '../../../src/policy/analyse/solve/search.ts';
import { compareRules, DEFAULT_BUDGET, type RulesComparison } from '../../../src/policy/analyse/solve/solve.ts';
import type { World } from '../../../src/policy/analyse/solve/world.ts';
import { checkExpr } from '../../../src/policy/check/checker.ts';
import { compileChecked } from '../../../src/policy/compile.ts';
import type { Action, Catalog, Policy, Related } from '../../../src/policy/types.ts';
import { smallestWorld } from '../../../src/workbench/smallest-world.ts';
import { type Id, relatedOf } from '../../oracle/database.ts';
import { readOptions } from '../../support/run-options.ts';
import { printShortfalls } from '../floor.ts';
import type { Setting } from '../policies/policies.ts';
import { Random } from '../random.ts';
import { PairMaker } from './pairs.ts';
import { allows, type Question, questionsOf, type SmallWorld, smallWorld } from './small-worlds.ts';

export interface SolverCounts {
  pairs: number;
  unknown: number;
  /** Pairs with a world that shows a difference. */
  differing: number;
  decisions: number;
  /** Milliseconds of processor time of each comparison. */
  readonly times: number[];
}
export const noSolverCounts = (): SolverCounts => ({ pairs: 0, unknown: 0, differing: 0, decisions: 0, times: [] });

export interface SolverRun {
  readonly seed: number;
  readonly counts: SolverCounts;
  /** Requests and records that each pair is asked about. */
  readonly questions: number;
  /** The work of a comparison, in milliseconds. */
  readonly budget: number;
  isOver(): boolean;
}

const ACTIONS: readonly Action[] = ['list', 'read', 'create', 'update', 'update', 'delete'];
const PAIRS_OF_A_SETTING = 48;
/** Every eighth comparison is timed: to read the clock of the processor takes a tenth of a comparison. */
const TIMED_PAIRS = 8;
/** Every eighth world is also made as small as `bylaw diff` shows it. */
const SHRUNK_WORLDS = 8;

/** The first disagreement, in words. */
export function runSolver(run: SolverRun): string | undefined {
  for (let number = 0; !run.isOver(); number++) {
    const random = new Random((run.seed * 1_000_003 + number * 7919) >>> 0);
    const small = smallWorld(random);
    const { catalog } = small.world;
    for (const collection of catalog.collections.keys()) {
      const setting = { catalog, collection, action: random.pick(ACTIONS) };
      const session = new Session(setting, small, { run, random });
      for (let i = 0; i < PAIRS_OF_A_SETTING && !run.isOver(); i++) {
        const found = session.next();
        if (found !== undefined)
          return `world ${number} of seed ${run.seed}, ${setting.action} ${collection}: ${found}`;
      }
    }
  }
  return undefined;
}

interface Running {
  readonly run: SolverRun;
  readonly random: Random;
}

class Session {
  readonly #setting: Setting;
  readonly #small: SmallWorld;
  readonly #run: SolverRun;
  readonly #maker: PairMaker;
  readonly #questions: readonly Question[];

  constructor(setting: Setting, small: SmallWorld, { run, random }: Running) {
    this.#setting = setting;
    this.#small = small;
    this.#run = run;
    this.#maker = new PairMaker(setting, small.ids, random);
    this.#questions = questionsOf(small, setting, random, run.questions);
  }

  next(): string | undefined {
    const { old, changed } = this.#maker.make();
    const [a, b] = [compiled(old, this.#setting), compiled(changed, this.#setting)];
    if (a === undefined || b === undefined) return undefined;
    const { counts, budget } = this.#run;
    const isTimed = counts.pairs % TIMED_PAIRS === 0;
    const start = isTimed ? process.cpuUsage() : undefined;
    const found = compareRules(this.#setting, [[a], [b]], { budget: new Budget(budget) });
    if (start !== undefined) {
      const { user, system } = process.cpuUsage(start);
      counts.times.push((user + system) / 1000);
    }
    counts.pairs++;
    if (found.verdict === 'unknown') counts.unknown++;
    if (found.wider !== undefined || found.narrower !== undefined) counts.differing++;
    const wrong = this.#wrongWorld([a, b], found) ?? this.#missed([a, b], found);
    return wrong && `${wrong}\n  old ${a.text}\n  new ${b.text}`;
  }

  #wrongWorld([old, changed]: readonly [Policy, Policy], { wider, narrower }: RulesComparison): string | undefined {
    const isShown = (world: World, allowing: Policy, denying: Policy): boolean => {
      const place = { action: this.#setting.action, related: relatedIn(this.#setting.catalog, world) };
      return allows([allowing], world, place) && !allows([denying], world, place);
    };
    const wrong = (word: string, found: World | undefined, allowing: Policy, denying: Policy): string | undefined => {
      if (found === undefined) return undefined;
      const { catalog } = this.#setting;
      const isShrunk = this.#run.counts.pairs % SHRUNK_WORLDS === 0;
      const asking = { allowedBy: [allowing], deniedBy: [denying] };
      const shrunk = isShrunk ? [smallestWorld(found, asking, { catalog })] : [];
      const other = [found, ...shrunk].find((world) => !isShown(world, allowing, denying));
      return other && `a world that is not ${word}: ${shown(other)}`;
    };
    return wrong('wider', wider, changed, old) ?? wrong('narrower', narrower, old, changed);
  }

  /** A world that contradicts the verdict. The second policy is asked only where its answer can. */
  #missed([old, changed]: readonly [Policy, Policy], { verdict }: RulesComparison): string | undefined {
    const [mayWiden, mayNarrow] = [MAY_WIDEN.has(verdict), MAY_NARROW.has(verdict)];
    if (mayWiden && mayNarrow) return undefined;
    const place = { action: this.#setting.action, related: this.#small.related };
    const isMissed = (question: Question): boolean => {
      if (mayWiden) return allows([old], question, place) && !allows([changed], question, place);
      if (mayNarrow) return allows([changed], question, place) && !allows([old], question, place);
      return allows([old], question, place) !== allows([changed], question, place);
    };
    this.#run.counts.decisions += this.#questions.length;
    const missed = this.#questions.find(isMissed);
    return missed && `\`${verdict}\`, but a world differs: ${JSON.stringify(missed)}`;
  }
}

const MAY_NARROW: ReadonlySet<string> = new Set(['narrower', 'both', 'unknown']);
const MAY_WIDEN: ReadonlySet<string> = new Set(['wider', 'both', 'unknown']);

/** Undefined: the checker rejects it. */
function compiled(expr: Expr, setting: Setting): Policy | undefined {
  const text = print(expr);
  const { expr: tree } = parse(text);
  const { checked } = tree === undefined ? {} : checkExpr(tree, { ...setting, text, errorsOnly: true });
  if (checked === undefined) return undefined;
  return compileChecked({ checked, text, catalog: setting.catalog, action: setting.action }, { codegen: false });
}

function relatedIn(catalog: Catalog, { rows, links }: World): Related {
  const pairs = new Map<string, (readonly [Id, Id])[]>();
  for (const { name, relations } of catalog.collections.values())
    for (const relation of relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const own = links.filter((link) => link.collection === name && link.relation === relation.name);
      pairs.set(
        relation.linkTable,
        own.map(({ owner, element }) => [owner, element] as readonly [Id, Id]),
      );
    }
  return relatedOf(catalog, { rows, links: pairs });
}

const shown = (world: World): string =>
  JSON.stringify(world, (_, value: unknown) => (value instanceof Map ? [...value] : value));

const MOST_UNKNOWN = 0.02;

export function fuzzSolver(argv: readonly string[]): number {
  const { values } = readOptions('npm run fuzz -- solver', {
    args: [...argv],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      pairs: { type: 'string', default: '1000000' },
      budget: { type: 'string', default: String(DEFAULT_BUDGET) },
    },
  });
  const end = Date.now() + Number(values.seconds) * 1_000;
  const counts = noSolverCounts();
  const isOver = (): boolean => Date.now() > end || counts.pairs >= Number(values.pairs);
  const [seed, budget] = [Number(values.seed), Number(values.budget)];
  const found = runSolver({ seed, counts, questions: 100, budget, isOver });
  if (found !== undefined) console.log(found);
  const times = counts.times.toSorted((a, b) => a - b);
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(2);
  const unknown = counts.unknown / Math.max(1, counts.pairs);
  console.log(
    `seed ${values.seed}: ${counts.pairs} pairs, ${counts.differing} differ, unknown ${(100 * unknown).toFixed(1)} %, ` +
      `${counts.decisions} decisions; ms of a comparison: median ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, most ${at(0.9999)}`,
  );
  const least = Math.max(1, Number(values.seconds));
  const short = printShortfalls([{ what: 'pairs', count: counts.pairs, least }]);
  return found === undefined && short === 0 && unknown <= MOST_UNKNOWN ? 0 : 1;
}
