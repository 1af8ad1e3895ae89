/**
 * The same through the real routes: two databases that differ only in what a caller may not see give the same statuses, headers and
 * bodies, byte for byte: queries, aggregates, lists, records with their ETags, capabilities, dry runs, and all their errors.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Database } from '../../../src/database/contract.ts';
import type { Policy, PolicyRequest, Row } from '../../../src/policy/types.ts';
import type { Collection, Schema } from '../../../src/schema/model/model.ts';
import { fill, PLAIN, randomSchema, readAll } from '../doors/doors-world.ts';
import { withKeys } from '../doors/keyed-schema.ts';
import { makeOwned, withOwned } from '../doors/owned-schema.ts';
import { withReferences } from '../doors/referring-schema.ts';
import { Random } from '../random.ts';
import { FuzzCaller, type StockedWorld } from './caller.ts';
import { aroundDifference } from './difference.ts';
import { HiddenChanges } from './hidden-changes.ts';
import { UNHURRIED } from './pages.ts';
import { linesOf, type Rule } from './read-rules.ts';
import { type Sent, ServiceQuestions } from './service-questions.ts';
import { MOST_COUNTED } from './small-counts.ts';
import type { QueryDoors } from './store-modules.ts';

export interface ServiceCounts {
  worlds: number;
  /** Asked before and after a change of what is hidden. */
  requests: number;
  /** Counts those that were answered with an error. */
  errors: number;
  changes: number;
  /** Took too long in one of the two databases: the clock decided, so these compare nothing. */
  expensive: number;
}
export const noServiceCounts = (): ServiceCounts => ({ worlds: 0, requests: 0, errors: 0, changes: 0, expensive: 0 });
export interface ServiceRun {
  readonly doors: QueryDoors;
  readonly seed: number;
  readonly counts: ServiceCounts;
  /** Callers of a world. Default 5. */
  readonly callers?: number;
  isOver(): boolean;
}

const ROWS = 12;
const CALLERS = 5;
const EMAIL = 'caller@example.org';
const PASSWORD = 'a password of the fuzz';

/** Runs one world in a database without tables. Returns the first disagreement in full, or undefined. */
export async function runServiceTaint(number: number, db: Database, run: ServiceRun): Promise<string | undefined> {
  const random = new Random((run.seed * 1_000_039 + number * 7_919) >>> 0);
  const { doors } = run;
  const { schema, issues } = doors.parseSchema(
    unhurried(withOwned(withReferences(withKeys(randomSchema(random), PLAIN, random), random), PLAIN, random)),
  );
  if (schema === undefined) throw new Error(`the schema of the fuzz has errors: ${JSON.stringify(issues)}`);
  await makeOwned({ doors, schema, db }, random);
  const folder = await mkdtemp(join(tmpdir(), 'bylaw-fuzz-'));
  const config = doors.readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', BYLAW_DATA: folder });
  // The opener of the database closes it.
  const kept = { ...db, close: async () => undefined };
  const passwords = doors.createPasswordPool(undefined, { memoryCost: 8, timeCost: 1, parallelism: 1 });
  const service = await doors.startService({ config, schema, db: kept, log: doors.openLog('error'), passwords });
  try {
    const stocked = { doors, schema, db };
    await fill(stocked, random, ROWS);
    const { id } = await service.app.auth.admin.addUser({ email: EMAIL, password: PASSWORD, roles: ['member'] });
    const token = await signIn(service.url);
    let data = await readAll(stocked);
    run.counts.worlds++;
    for (let i = 0; i < (run.callers ?? CALLERS) && !run.isOver(); i++) {
      const auth = data.rows.get('users')!.find((row) => row.id === id)!;
      const now = new Date().toISOString().replace('Z', '000Z');
      const session = { second_factor: false, signed_in_at: now };
      const facts = { ip: '127.0.0.1' };
      const request = { auth: { ...auth, ...session }, kind: 'user', facts, query: {}, now } as const;
      const asking = new ServiceSession({ world: { stocked, data, doors }, random, request, run });
      await service.replaceSchema(asking.schema);
      const found = await asking.run((sent) => answerTo(service.url, token, sent));
      if (found !== undefined) return `${found}\n  again       seed ${run.seed}, world ${number} of the service`;
      data = asking.data;
    }
    return undefined;
  } finally {
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const unhurried = (text: string): string => JSON.stringify({ ...JSON.parse(text), limits: UNHURRIED });

async function signIn(url: string): Promise<string> {
  const body = JSON.stringify({ email: EMAIL, password: PASSWORD });
  const headers = { 'Content-Type': 'application/json' };
  const answer = await fetch(`${url}/api/auth/login`, { method: 'POST', headers, body });
  const { access_token: token } = (await answer.json()) as { readonly access_token?: string };
  if (token === undefined) throw new Error(`the caller cannot sign in: ${answer.status}`);
  return token;
}

/** Status, headers and body. A request is named by the caller, so that nothing but the date is new. */
async function answerTo(url: string, token: string, { method, path, headers, body }: Sent): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      'X-Request-Id': 'fuzz',
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const shown = [...response.headers].filter(([name]) => name !== 'date' && name !== 'content-length');
  return { status: response.status, headers: shown, text: await response.text() };
}

interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly text: string;
}

interface SessionParts {
  readonly world: StockedWorld;
  readonly random: Random;
  readonly request: PolicyRequest;
  readonly run: ServiceRun;
}

/** A caller, with rules for every collection. */
class ServiceSession {
  readonly #parts: SessionParts;
  readonly #caller: FuzzCaller;
  /** The present rows of the database. */
  data: StockedWorld['data'];

  constructor(parts: SessionParts) {
    const { world, random, request } = parts;
    this.#parts = parts;
    do this.#caller = new FuzzCaller(world, random, request);
    while (
      // The questions have several methods, so that no row would be hidden from all of them.
      linesOf(this.#caller.rules).some((line) => line.includes('@request.method'))
    );
    this.data = world.data;
  }

  /** The schema with the caller's rules for reading. A reader may write: other rules could read hidden records. */
  get schema(): Schema {
    const { schema } = this.#parts.world.stocked;
    const { list, records, members } = this.#caller.rules;
    const policiesOf = (rule: Rule): readonly Policy[] => rule.map(({ generated }) => generated);
    const ruled = (collection: Collection): Collection => {
      const { name } = collection;
      const open = collection.access.read;
      const read = policiesOf(records.get(name)!);
      const access = { list: policiesOf(list), read, create: open, update: open, delete: open };
      const own = [...members.get(name)!].map(([member, rule]) => [member, { read: policiesOf(rule) }] as const);
      const isAsked = name === this.#caller.collection.name;
      return { ...collection, access: isAsked ? access : { ...access, list: [] }, memberAccess: new Map(own) };
    };
    const collections = new Map([...schema.collections].map(([name, collection]) => [name, ruled(collection)]));
    return { ...schema, collections };
  }

  async run(send: (sent: Sent) => Promise<Answer>): Promise<string | undefined> {
    const { world, random, run } = this.#parts;
    const hidden = new HiddenChanges(world, this.#caller, random);
    const { data, changes } = hidden.make(world.data);
    if (changes.length === 0) return undefined;
    const questions = new ServiceQuestions(this.#caller, { world, random, after: data }).all();
    const ask = async (): Promise<readonly string[]> => {
      const answers: string[] = [];
      for (const question of questions) answers.push(await this.#ask(question, send));
      return answers;
    };
    const before = await ask();
    for (const change of changes) await hidden.perform(change);
    this.data = data;
    const after = await ask();
    run.counts.requests += questions.length;
    run.counts.errors += before.filter((text) => !text.startsWith('2')).length;
    run.counts.changes += changes.length;
    run.counts.expensive += after.filter((text, i) => tookTooLong(text) || tookTooLong(before[i]!)).length;
    const at = after.findIndex((text, i) => text !== before[i] && !tookTooLong(text) && !tookTooLong(before[i]!));
    if (at < 0) return undefined;
    return [
      'DISAGREEMENT: an answer of the service depends on what is hidden',
      `  question    ${JSON.stringify(questions[at])}`,
      `  changed     ${JSON.stringify(changes)}`,
      `  before      ${aroundDifference(before[at]!, after[at]!)}`,
      `  after       ${aroundDifference(after[at]!, before[at]!)}`,
      `  request     ${JSON.stringify(this.#caller.request)}`,
      ...linesOf(this.#caller.rules),
    ].join('\n');
  }

  /** A query with the page after it. */
  async #ask(sent: Sent, send: (sent: Sent) => Promise<Answer>): Promise<string> {
    const answer = await send(sent);
    const cursor = sent.isQuery ? cursorOf(answer.text) : undefined;
    const { offset: _, ...asked } = (sent.body ?? {}) as Row;
    const more = cursor === undefined ? [] : [await send({ ...sent, body: { ...asked, cursor } })];
    return [answer, ...more].map(said).join('\n');
  }
}

/** Not: would hold too much, which no clock decides. */
const tookTooLong = (answer: string): boolean => answer.includes('"the read takes too long;');

function cursorOf(text: string): string | undefined {
  const { page } = JSON.parse(text) as { readonly page?: { readonly next_cursor?: string | null } };
  return page?.next_cursor ?? undefined;
}

/** A figure of the planner's is that of tables, and is given only where nothing is hidden. */
function said({ status, headers, text }: Answer): string {
  const isSmall = (total: string): boolean => Number(total) <= MOST_COUNTED;
  const planned = text.replace(/"total":(\d+),"total_is_estimate":true/, (same, total) =>
    isSmall(total) ? same : '"total":"planned"',
  );
  return `${status} ${JSON.stringify(headers)} ${planned}`;
}
