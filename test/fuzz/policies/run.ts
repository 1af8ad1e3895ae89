/** Worlds, one after the other, each with policies and requests, until time is up or something disagrees. */
import type { Expr } from '../../../grammar/syntax.ts';
import type { Action, PolicyRequest } from '../../../src/policy/types.ts';
import type { Truth } from '../../oracle/interpret.ts';
import { Random } from '../random.ts';
import { ask, isTimeout, type Question } from './batch.ts';
import type { Compiler } from './compiler.ts';
import {
  type Arena,
  arenaOf,
  type Compiled,
  compileForm,
  conditionOf,
  expectedOf,
  type Finding,
  FORMS,
  Rejected,
  testExplanation,
  testInProcess,
  truths,
  type View,
  viewsOf,
  writtenTable,
} from './differential.ts';
import { FrontEndFault } from './front-end-fault.ts';
import { withPin } from './pinned-policies.ts';
import { PolicyMaker, type Setting } from './policies.ts';
import { randomRequests } from './requests.ts';
import type { Shapes } from './shapes.ts';
import { leavesOf, shrink } from './shrink.ts';
import { createTables, createWrittenTable, type Database } from './tables.ts';
import { NOW } from './values.ts';
import { FEW_ROWS, randomWorld, type World } from './world.ts';

export interface Lane {
  readonly database: Database;
  readonly backend: 'PostgreSQL' | 'PGlite';
}
export interface Counts {
  worlds: number;
  policies: number;
  rejected: number;
  /** A policy, a request and a row have one decision, in all forms and by all backends. */
  decisions: number;
  /** The decisions that a PostgreSQL or the embedded database has made too. */
  inPostgres: number;
  inEmbedded: number;
  /** The decisions about the record that a write makes. */
  writes: number;
  unknown: number;
  /** Conditions that take PostgreSQL too long for all rows at once. */
  slow: number;
  /** Allowed rows, by relations of which their policy requires one id. */
  pinned: number;
  readonly rejections: Map<string, number>;
}
export const noCounts = (): Counts => ({
  worlds: 0,
  policies: 0,
  rejected: 0,
  decisions: 0,
  inPostgres: 0,
  inEmbedded: 0,
  writes: 0,
  unknown: 0,
  slow: 0,
  pinned: 0,
  rejections: new Map(),
});
export interface Run {
  readonly compiler: Compiler;
  readonly seed: number;
  readonly counts: Counts;
  readonly shapes?: Shapes;
  /** The number of rows of a collection in the world of that number. Default: few. */
  rowsOf?(world: number): number;
  /** Default: a disagreement is minimised before it is reported. */
  readonly shrinks?: boolean;
  isOver(): boolean;
}
export interface Disagreement extends Finding {
  readonly seed: number;
  readonly world: number;
  readonly arena: Arena;
  readonly original: string;
  readonly leaves: number;
}

const ACTIONS: readonly Action[] = ['list', 'update', 'read', 'create', 'delete', 'update'];
/** Policies of a collection; more of them if its rows took longer to make. */
const POLICIES = 24;
const POLICIES_OF_MANY_ROWS = 72;
const QUESTIONS = 48;

/** A world of one number may be made again, of another compiler. */
let schemas = 0;

/** Runs a world. The first disagreement, made small, or undefined. */
export async function runWorld(number: number, lane: Lane, run: Run): Promise<Disagreement | undefined> {
  const random = new Random((run.seed * 1_000_003 + number * 7919) >>> 0);
  const most = run.rowsOf?.(number);
  const world = randomWorld(random, { most, hasOwners: true });
  const schema = `fuzz_${process.pid}_${++schemas}`;
  const { database } = lane;
  await database.query(`CREATE SCHEMA ${schema}`);
  try {
    await database.query(`SET search_path = ${schema}`);
    await createTables(database, { ...world, collation: random.chance(0.5) ? 'declared' : 'default' });
    // Without statistics the planner takes every table for a small one.
    if (most !== undefined && most > FEW_ROWS) await database.query('ANALYZE');
    run.counts.worlds++;
    for (const collection of world.catalog.collections.keys()) {
      const setting: Setting = { catalog: world.catalog, collection, action: random.pick(ACTIONS) };
      await writtenRows(database, { world, setting });
      const found = await new Session({ world, setting, lane, run, random, number }).run();
      if (found) return found;
      if (run.isOver()) return undefined;
    }
    return undefined;
  } finally {
    await database.query(`DROP SCHEMA ${schema} CASCADE`);
  }
}

/** The result of the writes of a session, as a table beside the stored rows. */
async function writtenRows(
  database: Database,
  { world, setting }: Pick<SessionParts, 'world' | 'setting'>,
): Promise<void> {
  const { collection: name, action } = setting;
  if (action !== 'create' && action !== 'update') return;
  const collection = world.catalog.collections.get(name)!;
  const rows = (action === 'create' ? world.created : world.updated).get(name)!;
  await createWrittenTable(database, { catalog: world.catalog, name: writtenTable(name, action), collection, rows });
}

interface SessionParts {
  readonly world: World;
  readonly setting: Setting;
  readonly lane: Lane;
  readonly run: Run;
  readonly random: Random;
  readonly number: number;
}
/** The verdicts of a policy for the rows of a view, by the definition. */
interface Answered {
  readonly view: View;
  readonly answers: readonly Truth[];
}
interface Asked {
  readonly expr: Expr;
  readonly from: string;
  readonly question: Question;
}

/** Runs a collection and an action of a world. */
class Session {
  readonly #parts: SessionParts;
  readonly #arena: Arena;
  readonly #maker: PolicyMaker;
  #waiting: Asked[] = [];
  #inFlight: Promise<Disagreement | undefined> = Promise.resolve(undefined);

  constructor(parts: SessionParts) {
    this.#parts = parts;
    const { world, setting, random } = parts;
    this.#arena = arenaOf(world, setting);
    const ids = new Map([...world.data.rows].map(([name, rows]) => [name, rows.map((row) => row.id as string)]));
    this.#maker = new PolicyMaker(setting, { random, ids });
  }

  async run(): Promise<Disagreement | undefined> {
    try {
      return await this.#policies();
    } finally {
      await this.#inFlight.catch(() => undefined);
    }
  }

  async #policies(): Promise<Disagreement | undefined> {
    const { random, run, world, setting } = this.#parts;
    const rows = world.data.rows.get(setting.collection)!;
    const isLarge = rows.length > FEW_ROWS;
    for (let i = 0; i < (isLarge ? POLICIES_OF_MANY_ROWS : POLICIES); i++) {
      const made = this.#maker.make();
      const expr = (random.chance(0.12) && withPin(made, { setting, rows, random })) || made;
      const forms = this.#compile(expr);
      if (forms === undefined) continue;
      if (!('length' in forms)) return this.#shrunk(expr, forms);
      for (const request of randomRequests(world, setting, random)) {
        const finding = this.#decide(expr, forms, request);
        if (finding) return this.#shrunk(expr, finding);
        if (this.#waiting.length >= QUESTIONS) {
          const found = await this.#flush();
          if (found) return found;
        }
      }
      // Lets the other lanes speak to their databases.
      if (i % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (run.isOver()) break;
    }
    return (await this.#flush()) ?? (await this.#inFlight);
  }

  /** Undefined where the policy is rightly refused; a finding where the front end is at fault. */
  #compile(expr: Expr): readonly Compiled[] | Finding | undefined {
    const { run, setting, random } = this.#parts;
    run.counts.policies++;
    try {
      const forms = FORMS.map((form) => compileForm(form, expr, { setting, compiler: run.compiler, random }));
      for (const { meant, form } of forms) if (form !== 'it or not it') run.shapes?.count(meant);
      return forms;
    } catch (error) {
      if (error instanceof FrontEndFault) return this.#ofFrontEnd(error);
      if (!(error instanceof Rejected)) throw error;
      run.counts.rejected++;
      const [code = ''] = error.message.split(':');
      if (!run.counts.rejections.has(code) && process.env.FUZZ_REJECTED) console.log(`rejected ${error.message}`);
      run.counts.rejections.set(code, (run.counts.rejections.get(code) ?? 0) + 1);
      return undefined;
    }
  }

  #ofFrontEnd(error: FrontEndFault): Finding {
    const [view] = viewsOf(this.#arena, false, this.#parts.run.compiler);
    const request = { auth: null, query: {}, now: NOW };
    return {
      backend: 'front end',
      form: 'it',
      text: error.text,
      request,
      view: view!,
      row: 0,
      expected: undefined,
      error,
    };
  }

  #decide(expr: Expr, forms: readonly Compiled[], request: PolicyRequest): Finding | undefined {
    for (const view of viewsOf(this.#arena, namesNext(forms), this.#parts.run.compiler)) {
      const found = this.#decideView(expr, forms, request, view);
      if (found) return found;
    }
    return undefined;
  }

  #decideView(expr: Expr, forms: readonly Compiled[], request: PolicyRequest, view: View): Finding | undefined {
    const { run } = this.#parts;
    const answers: Truth[] = truths(forms[0]!.meant, request, this.#arena, view);
    for (const answer of answers) if (answer === undefined) run.counts.unknown++;
    const asked = this.#inProcess(forms, request, { view, answers });
    if ('backend' in asked) return asked;
    for (const question of asked) this.#waiting.push({ expr, from: view.from, question });
    run.counts.decisions += answers.length;
    if (view.name !== 'stored') run.counts.writes += answers.length;
    return undefined;
  }

  /** The disagreement that the process has found, or the rest to ask the database. */
  #inProcess(
    forms: readonly Compiled[],
    request: PolicyRequest,
    { view, answers }: Answered,
  ): Finding | readonly Question[] {
    const { random, run } = this.#parts;
    const asked = { answers, arena: this.#arena, view, random, compiler: run.compiler };
    const explained = testExplanation(forms[0]!, request, asked);
    if (explained) return explained;
    const questions: Question[] = [];
    for (const compiled of forms) {
      const expected = answers.map((answer) => expectedOf(compiled.form, answer));
      const of = { expected, arena: this.#arena, view, random, counts: run.counts };
      const finding = testInProcess(compiled, request, of);
      if (finding) return finding;
      const question = this.#questionOf(compiled, { request, view, expected });
      if (typeof question === 'function') return question();
      questions.push(question);
    }
    return questions;
  }

  /** A function: the finding that there is no condition. */
  #questionOf(
    compiled: Compiled,
    { request, view, expected }: { request: PolicyRequest; view: View; expected: readonly boolean[] },
  ): Question | (() => Finding) {
    const { form, text } = compiled;
    const { setting, random, lane } = this.#parts;
    try {
      const printing = { inUnion: random.chance(0.25), looksUp: random.chance(0.4) };
      const condition = conditionOf(compiled, { request, view, setting, ...printing });
      return { condition, expected, finding: { form, text, request, view } };
    } catch (error) {
      return () => ({ backend: lane.backend, form, text, request, view, row: 0, expected: undefined, error });
    }
  }

  async #flush(): Promise<Disagreement | undefined> {
    const before = await this.#inFlight;
    if (before) return before;
    const asked = this.#waiting;
    this.#waiting = [];
    if (asked.length > 0) this.#inFlight = this.#askAll(asked);
    return undefined;
  }

  async #askAll(asked: readonly Asked[]): Promise<Disagreement | undefined> {
    for (const [from, group] of Map.groupBy(asked, (each) => each.from)) {
      const found = await this.#ask(from, group);
      if (found) return found;
    }
    return undefined;
  }

  async #ask(from: string, asked: readonly Asked[]): Promise<Disagreement | undefined> {
    const { lane, run, random } = this.#parts;
    const batch = { from, questions: asked.map(({ question }) => question), asWhere: random.chance(0.2) };
    const finding = await ask(lane.database, batch, { compiler: run.compiler, backend: lane.backend });
    // A condition that is slow for thousands of pairs of rows is right nevertheless.
    if (isTimeout(finding?.error)) {
      run.counts.slow++;
      return undefined;
    }
    if (finding) {
      const { expr } = asked.find(({ question }) => question.finding.text === finding.text)!;
      return this.#shrunk(expr, finding);
    }
    const of = lane.backend === 'PGlite' ? 'inEmbedded' : 'inPostgres';
    for (const { question } of asked) if (question.finding.form === 'it') run.counts[of] += question.expected.length;
    return undefined;
  }

  async #shrunk(original: Expr, start: Finding): Promise<Disagreement> {
    const disagrees = (expr: Expr) => this.#again(expr, start);
    const { run, number } = this.#parts;
    const { expr, found } =
      run.shrinks === false ? { expr: original, found: start } : await shrink(original, { start, disagrees });
    return {
      ...found,
      seed: run.seed,
      world: number,
      arena: this.#arena,
      original: start.text,
      leaves: leavesOf(expr),
    };
  }

  /** The same question about another tree: every form, every backend. */
  async #again(expr: Expr, { request }: Finding): Promise<Finding | undefined> {
    const { lane, run, random, setting } = this.#parts;
    try {
      const forms = FORMS.map((form) => compileForm(form, expr, { setting, compiler: run.compiler, random }));
      for (const view of viewsOf(this.#arena, namesNext(forms), this.#parts.run.compiler)) {
        const answers = truths(forms[0]!.meant, request, this.#arena, view);
        const asked = this.#inProcess(forms, request, { view, answers });
        if ('backend' in asked) return asked;
        for (const question of asked) {
          for (const asWhere of [false, true]) {
            const batch = { from: view.from, questions: [question], asWhere };
            const found = await ask(lane.database, batch, { compiler: run.compiler, backend: lane.backend });
            if (found) return found;
          }
        }
      }
    } catch (error) {
      if (error instanceof FrontEndFault) return this.#ofFrontEnd(error);
      if (!(error instanceof Rejected)) throw error;
    }
    return undefined;
  }
}

const namesNext = (forms: readonly Compiled[]): boolean => forms[0]!.generated.namesNext;
