/**
 * A world: its lists as we write them, as new and as remembered statements, beside every other form that we know.
 * All forms must find the same bytes, and ours must read about as few buffers as the best of them.
 */
import type { Database } from '../../../src/database/contract.ts';
import type { AccessContext, Hooks } from '../../../src/records/access-context.ts';
import type { StatisticsOf } from '../../../src/records/page/table-statistics.ts';
import type { Records } from '../../../src/records/records.ts';
import { indexesOf } from '../../../src/schema/model/indexes.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { constraintName, storedTables } from '../../../src/schema/model/stored-names.ts';
import type { Sql } from '../../../src/sql.ts';
import { aroundDifference } from '../query/difference.ts';
import type { QueryDoors } from '../query/store-modules.ts';
import { Random } from '../random.ts';
import { type AskedList, accessOf, randomList, requestOf, smallerLists } from './asked-lists.ts';
import { BufferMeter, type MeasuredForm, type Reads, type Session, TooSlow } from './buffers.ts';
import { asLookedUp, asStated, FORMS, type Form, hooksOf, NotOfThisForm, OTHER_SETTINGS } from './forms.ts';
import { PlanConditions } from './plan-conditions.ts';
import { fillingsOf, randomWorld, type StoredNames, schemaText, type TableSpec, type WorldSpec } from './plan-world.ts';

export interface PlanDoors extends QueryDoors {
  readonly BackgroundStatistics: typeof import('../../../src/records/page/table-statistics.ts').BackgroundStatistics;
}
export interface PlanCounts {
  worlds: number;
  lists: number;
  /** Statements in another form that were run and compared. */
  forms: number;
  /** Lists that read so many buffers that those of the other forms were counted. */
  compared: number;
  /** Forms that took too long. */
  cutOff: number;
  /** Lists that took too long in every form. */
  slow: number;
}
export const noPlanCounts = (): PlanCounts => ({
  worlds: 0,
  lists: 0,
  forms: 0,
  compared: 0,
  cutOff: 0,
  slow: 0,
});

export interface PlanRun {
  readonly doors: PlanDoors;
  readonly seed: number;
  readonly counts: PlanCounts;
  /** The rows of the largest table. */
  readonly rows: number;
  /** A page of so few buffers is not compared: some microseconds do not matter. */
  readonly few: number;
  /** The lists of one set of rules. */
  readonly lists: number;
  /** Every list expands some of its relations. */
  readonly isExpanded?: boolean | undefined;
  /** Choices of the planner in place of ours, to see that the fuzz finds them. */
  readonly hooks?: Hooks | undefined;
  /** The program without the fault of `doors`: a list that it also finds to be slow shows nothing of the fault. */
  readonly usual?: PlanDoors | undefined;
  /** The only lists that are compared, of all of the world. */
  readonly only?: ReadonlySet<number> | undefined;
  note(disagreement: PlanDisagreement): void;
  /** A disagreement of this cause was noted. */
  isKnown(cause: string): boolean;
  isOver(): boolean;
}
export interface PlanDisagreement {
  /** A line, equal for disagreements of one cause. */
  readonly cause: string;
  readonly text: string;
  /** The quickest form takes so much less time, too. */
  readonly isSlower: boolean;
}
/** A database without tables, and a session on it. */
export interface PlanPlace {
  readonly db: Database;
  readonly session: Session;
}

const RULE_SETS = 3;
const MOST_RATIO = 5;
/** A page may read so many buffers where some form manages with few. */
const MOST_BUFFERS = 3_000;
const GOOD_BUFFERS = 300;
/** Rows that take some hundred milliseconds, however few buffers hold them. */
const MOST_ROWS = 1_000_000;
/** A form is slower than ours where it takes so many times longer: single times are uneven. */
const SLOWER = 1.5;

export async function runPlans(number: number, place: PlanPlace, run: PlanRun): Promise<void> {
  const random = new Random((run.seed * 1_000_151 + number * 7_933) >>> 0);
  const world = randomWorld(random, run.rows);
  let statisticsOf: StatisticsOf | undefined;
  let former: ReadonlySet<string> = new Set();
  run.counts.worlds++;
  for (let set = 0; set < RULE_SETS && !run.isOver(); set++) {
    const { rules, schema, text } = ruledSchema(world, random, run.doors);
    await run.doors.applyMigration(place.db, schema);
    // A migration keeps the indexes of former rules, of which a planner that knows its own schema alone knows nothing.
    const indexes = indexNames(schema);
    for (const name of former) if (!indexes.has(name)) await place.session.unlimited(`DROP INDEX "${name}"`);
    former = indexes;
    statisticsOf ??= await fillWorld(world, schema, place, run.doors);
    const session = new PlanSession({ place, run, schema, statisticsOf, world });
    const usual = run.usual && usualSession({ place, run: { ...run, doors: run.usual }, text, statisticsOf, world });
    for (let i = 0; i < run.lists && !run.isOver(); i++) {
      const at = set * run.lists + i;
      const ofList = new Random((run.seed * 1_000_153 + number * 7_937 + at * 101) >>> 0);
      const list = randomList(world, rules, ofList, run.isExpanded);
      const isOther = run.only?.has(at) === false;
      const found = await session.examine(list, isOther);
      if (found === undefined || (await usual?.examine(list)) !== undefined) continue;
      const smallest = run.isKnown(found.cause) ? found : await session.shrunk(list, found);
      const again = `npm run fuzz -- plans --seed ${run.seed} --rows ${run.rows} --lists ${run.lists} --world ${number} --list ${at}`;
      const report = await session.report(smallest, { rules, text, again });
      run.note({ cause: found.cause, text: report, isSlower: isSlower(found) });
    }
  }
}

const indexNames = (schema: Schema): ReadonlySet<string> =>
  new Set(
    [...schema.collections.values()].flatMap((collection) =>
      indexesOf(collection, schema)
        .filter(({ unique }) => !unique)
        .map(({ columns }) => constraintName(collection.table, columns, 'idx')),
    ),
  );

type UsualSetting = Omit<PlanSetting, 'schema'> & { readonly text: string };

const usualSession = ({ text, ...setting }: UsualSetting): PlanSession =>
  new PlanSession({ ...setting, schema: setting.run.doors.parseSchema(text).schema! });

/** Rules that the schema accepts. */
function ruledSchema(world: WorldSpec, random: Random, { parseSchema }: PlanDoors) {
  for (;;) {
    const rules = new Map(world.tables.map((table) => [table.name, PlanConditions.rules(world, table, random)]));
    const text = schemaText(world, rules);
    const { schema, issues } = parseSchema(text);
    if (schema !== undefined) return { rules, schema, text };
    // A rule may be constant, too deep or too large.
    const [first] = issues;
    if (first === undefined || !JSON.stringify(issues).includes('access')) throw new Error(JSON.stringify(issues));
  }
}

async function fillWorld(
  world: WorldSpec,
  schema: Schema,
  { db, session }: PlanPlace,
  doors: PlanDoors,
): Promise<StatisticsOf> {
  const later: string[] = [];
  // References are right by their making.
  await session.text(`SET session_replication_role = 'replica'`);
  for (const table of world.tables) {
    const filling = fillingsOf(table, namesOf(table, schema));
    for (const statement of filling.analysed) await session.unlimited(statement);
    later.push(...filling.later);
  }
  const tables = [...storedTables(schema)];
  const statistics = new doors.BackgroundStatistics(db, tables);
  await statistics.refresh();
  const known = new Map(tables.map((table) => [table, statistics.of(table)]));
  for (const statement of later) await session.unlimited(statement);
  await session.text(`SET session_replication_role = 'origin'`);
  const dead = await deadRows(session);
  return (table) => {
    const found = known.get(table);
    return found && { ...found, dead: dead.get(table) };
  };
}

/** PostgreSQL counts them at once, and the values of columns only as it looks at the table. */
async function deadRows(session: Session): Promise<ReadonlyMap<string, number>> {
  await session.text('SELECT pg_stat_force_next_flush()');
  const counts = await session.text(
    'SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = current_schema()',
  );
  return new Map(counts.map(([table, count]) => [table!, Number(count)]));
}

function namesOf({ name, references, fields, links }: TableSpec, { collections }: Schema): StoredNames {
  const collection = collections.get(name)!;
  const columns = new Map([
    ...fields.map((field) => [field.name, collection.fields.get(field.name)!.column] as const),
    ...references.map((each) => {
      const relation = collection.relations.get(each.name)!;
      return [each.name, (relation as { readonly column: string }).column] as const;
    }),
  ]);
  const linked = links && collection.relations.get(links.name);
  return {
    table: collection.table,
    columns,
    links:
      linked?.kind === 'many_to_many'
        ? { table: linked.linkTable, source: linked.sourceColumn, target: linked.targetColumn }
        : undefined,
  };
}

// ---------------------------------------------------------------- the lists of one set of rules

/** A list as one form asks it. */
interface Answer {
  /** The page and its expands. */
  readonly sent: readonly Sql[];
  /** Undefined: it took too long. */
  readonly shown: string | undefined;
  readonly cursor: string | undefined;
}
interface Found {
  readonly cause: string;
  readonly list: AskedList;
  readonly what: string;
  readonly ours: readonly MeasuredForm[];
  readonly forms: readonly MeasuredForm[];
}

interface AskedBy {
  readonly access: AccessContext;
  readonly cursor?: string | undefined;
}

interface Reported {
  readonly rules: ReadonlyMap<string, readonly string[]>;
  /** The schema file. */
  readonly text: string;
  /** The command that shows the same. */
  readonly again: string;
}

const textOf = ({ name, statement, buffers, rows, ms }: MeasuredForm): string =>
  `--- ${name}: ${buffers} buffers, ${rows} rows, ${ms.toFixed(1)} ms\n${statement.text.replaceAll(/\n\s*/g, '\n  ')}\n  ${JSON.stringify(statement.values)}`;

/** The form has sent a statement that another form has sent. */
class KnownStatement extends Error {}

interface PlanSetting {
  readonly place: PlanPlace;
  readonly run: PlanRun;
  readonly schema: Schema;
  readonly statisticsOf: StatisticsOf;
  readonly world: WorldSpec;
}

class PlanSession {
  readonly #setting: PlanSetting;
  readonly #meter: BufferMeter;
  readonly #ours: Records;
  readonly #forms: readonly { readonly form: Form; readonly records: Records }[];
  #sent: Sql[] = [];
  /** The first statements of all forms of a list; undefined: they may be equal. */
  #known: Set<string> | undefined;

  constructor(setting: PlanSetting) {
    const { place, run, schema, statisticsOf } = setting;
    this.#setting = setting;
    this.#meter = new BufferMeter(place.session);
    const rows: Database['rows'] = async (statement) => {
      if (!statement.text.startsWith('EXPLAIN')) {
        this.#sent.push(statement);
        const key = JSON.stringify([statement.text, statement.values]);
        if (this.#sent.length === 1 && this.#known?.has(key)) throw new KnownStatement();
        this.#known?.add(key);
      }
      return place.session.rows(statement);
    };
    const watched = { ...place.db, replicaFor: () => ({ rows, run: place.db.run }) } as unknown as Database;
    this.#ours = run.doors.createRecords(watched, schema, { statisticsOf, ...run.hooks });
    this.#forms = FORMS.map((form) => ({
      form,
      records: run.doors.createRecords(watched, schema, hooksOf(form, statisticsOf)),
    }));
  }

  /** @param isOther the list is only remembered */
  async examine(list: AskedList, isOther = false): Promise<Found | undefined> {
    const { doors, counts, few } = this.#setting.run;
    const access = accessOf(list, doors, this.#setting.schema);
    this.#known = undefined;
    let cursor: string | undefined;
    if (list.isSecond) {
      cursor = (await this.#ask(this.#ours, list, { access })).cursor;
      if (cursor === undefined) return undefined;
    }
    this.#known = new Set();
    const { session } = this.#setting.place;
    await session.limit('ours');
    const ours = await this.#ask(this.#ours, list, { access, cursor });
    const [page, ...expands] = ours.sent;
    // The filters contradict the rules.
    if (page === undefined) return undefined;
    const measured = await this.#measured(page);
    if (isOther) return undefined;
    counts.lists++;
    const most = mostOf(measured);
    const isLong = most.buffers > few || most.rows > MOST_ROWS;
    if (isLong) counts.compared++;
    const forms: MeasuredForm[] = [...measured];
    await session.limit('other');
    for (const { form, records } of this.#forms) {
      const isStated = form.keys === 'as stated';
      const other = await this.#ask(records, list, { access: isStated ? asStated(access) : access, cursor });
      const [statement] = other.sent;
      if (statement === undefined) continue;
      // PostgreSQL may plan the whole condition in other ways.
      if (isLong && form.isPlain)
        for (const settings of OTHER_SETTINGS) {
          const name = `${form.name}, ${settings.join(', ')}`;
          forms.push({ name, statement, settings, ...(await this.#meter.asNew(statement, settings)) });
        }
      if (other.shown === KNOWN) continue;
      counts.forms++;
      if (other.shown === undefined) counts.cutOff++;
      else if (ours.shown !== undefined && other.shown !== ours.shown) {
        const what = `${form.name}:\n  ours   ${aroundDifference(ours.shown, other.shown)}\n  other  ${aroundDifference(other.shown, ours.shown)}`;
        const both = [{ name: form.name, statement, buffers: Number.NaN, rows: Number.NaN, ms: Number.NaN }];
        return { cause: `bytes, ${form.name}`, list, what, ours: measured, forms: both };
      }
      if (isLong && other.shown !== undefined)
        forms.push({ name: form.name, statement, ...(await this.#meter.asNew(statement)) });
    }
    await session.limit('ours');
    const found = await this.#expandsOf(list, expands, { access, cursor });
    if (found !== undefined) return found;
    if (!isLong) return undefined;
    if (forms.every(({ buffers }) => buffers === Number.POSITIVE_INFINITY)) counts.slow++;
    const others = notSlower(forms, most);
    return isTooMany(most, others, few) ? this.#tooMany(list, measured, others) : undefined;
  }

  /** Finds the smallest list that still shows the same of the same statement. */
  async shrunk(list: AskedList, found: Found): Promise<Found> {
    for (const smaller of smallerLists(list)) {
      const other = await this.examine(smaller).catch(() => undefined);
      if (other !== undefined && other.cause.split(':')[0] === found.cause.split(':')[0])
        return this.shrunk(smaller, other);
    }
    return found;
  }

  async report(found: Found, { rules, text, again }: Reported): Promise<string> {
    const { list, what, ours, forms } = found;
    const states = this.#setting.world.tables.map(({ name, rows, state }) => `${name} ${rows} (${state})`);
    const sorted = forms.toSorted((a, b) => a.buffers - b.buffers);
    const [worst] = ours.toSorted((a, b) => b.buffers - a.buffers);
    const planOf = async (form: MeasuredForm): Promise<string> =>
      `plan of ${form.name}:\n${await this.#meter.planOf(form).catch(String)}`;
    return [
      `DISAGREEMENT: ${what}`,
      `  list     ${JSON.stringify(list)}`,
      ...list.rules.map((i) => `  rule     ${rules.get(list.collection)![i]}`),
      `  tables   ${states.join(', ')}`,
      `  schema   ${text}`,
      ...ours.map((each) => textOf({ ...each, name: `OURS, ${each.name}` })),
      ...sorted.map(textOf),
      await planOf(worst!),
      await planOf(sorted[0]!),
      `  again    ${again}`,
    ].join('\n');
  }

  async #measured(page: Sql): Promise<readonly MeasuredForm[]> {
    const asNew = { name: 'new', statement: page, ...(await this.#meter.asNew(page)) };
    if (page.isPlannedAnew) return [asNew];
    return [asNew, { name: 'remembered', statement: page, ...(await this.#meter.asRemembered(page)) }];
  }

  /** Compares the statements of expands, of a few hundred rows at most, with those of the rules in other forms. */
  async #expandsOf(list: AskedList, ours: readonly Sql[], asked: AskedBy): Promise<Found | undefined> {
    let others: readonly { readonly name: string; readonly sent: readonly Sql[] }[] | undefined;
    for (const [i, statement] of ours.entries()) {
      const measured = await this.#measured(statement);
      const most = mostOf(measured);
      if (most.buffers <= this.#setting.run.few && most.rows <= MOST_ROWS) continue;
      this.#known = undefined;
      others ??= await this.#otherExpands(list, asked);
      const all = [...measured];
      for (const { name, sent } of others) {
        const statement = sent[i];
        if (statement !== undefined) all.push({ name, statement, ...(await this.#meter.asNew(statement)) });
      }
      const forms = notSlower(all, most);
      if (isTooMany(most, forms, this.#setting.run.few)) return this.#tooMany(list, measured, forms, 'expand ');
    }
    return undefined;
  }

  async #otherExpands(list: AskedList, asked: AskedBy) {
    const forms = [
      { name: 'as stated', access: asStated(asked.access) },
      { name: 'look-ups', access: asLookedUp(asked.access) },
    ];
    const others = [];
    for (const { name, access } of forms) {
      const { sent } = await this.#ask(this.#ours, list, { ...asked, access });
      others.push({ name, sent: sent.slice(1) });
    }
    return others;
  }

  #tooMany(list: AskedList, ours: readonly MeasuredForm[], forms: readonly MeasuredForm[], of = ''): Found {
    const [best] = forms.toSorted((a, b) => a.buffers - b.buffers);
    const readBy = ({ name, buffers, rows, ms }: MeasuredForm): string =>
      `${name} ${buffers} (${rows} rows, ${ms.toFixed(1)} ms)`;
    const cause = `buffers ${of}of ${list.collection}: ${best!.name}`;
    return { cause, list, what: `${of}${ours.map(readBy).join(', ')}; ${readBy(best!)} buffers`, ours, forms };
  }

  async #ask(records: Records, list: AskedList, { access, cursor }: AskedBy): Promise<Answer> {
    const { run, schema } = this.#setting;
    const sent: Sql[] = [];
    this.#sent = sent;
    try {
      const page = await records.list(access, requestOf(list, cursor, run.doors, schema));
      return { sent, shown: `${page.hasMore} ${page.json}`, cursor: page.nextCursor };
    } catch (error) {
      if (error instanceof NotOfThisForm) return { sent: [], shown: undefined, cursor: undefined };
      if (error instanceof KnownStatement) return { sent, shown: KNOWN, cursor: undefined };
      if (error instanceof TooSlow) return { sent, shown: undefined, cursor: undefined };
      throw error;
    }
  }
}

const KNOWN = 'known';

const isSlower = ({ ours, forms }: Found): boolean =>
  mostOf(ours).ms > MOST_RATIO * Math.min(...forms.map(({ ms }) => ms));

const mostOf = (forms: readonly Reads[]): Reads => ({
  buffers: Math.max(...forms.map(({ buffers }) => buffers)),
  rows: Math.max(...forms.map(({ rows }) => rows)),
  ms: Math.max(...forms.map(({ ms }) => ms)),
});

/** A form that reads less and takes longer, such as a long list of keys that is compared with each row, is not better. */
const notSlower = <F extends Reads>(forms: readonly F[], ours: Reads): readonly F[] =>
  forms.filter(({ ms }) => ms <= SLOWER * ours.ms);

function isTooMany(ours: Reads, forms: readonly Reads[], few: number): boolean {
  const best = Math.min(...forms.map(({ buffers }) => buffers));
  const least = Math.min(...forms.map(({ rows }) => rows));
  const small = Math.min(MOST_BUFFERS, 2 * few);
  const limit = best <= GOOD_BUFFERS ? small : Math.max(MOST_RATIO * best, small);
  return ours.buffers > limit || ours.rows > Math.max(MOST_RATIO * least, MOST_ROWS);
}
