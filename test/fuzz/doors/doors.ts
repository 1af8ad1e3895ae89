/**
 * The store's own doors: random creates, updates and deletes under random rules, on a real database. test/oracle/judge.ts derives from the definition what each
 * comes to: whether it is allowed, and what the database holds afterwards.
 */
import type { Expr, Operand, Path } from '../../../grammar/syntax.ts';
import type { Database } from '../../../src/database/contract.ts';
import type { Permit } from '../../../src/policy/access.ts';
import type { Action, Checked, Policy, PolicyRequest, Row } from '../../../src/policy/types.ts';
import { readsData } from '../../../src/policy/visit.ts';
import type { AccessContext } from '../../../src/records/access-context.ts';
import type { ExactFilter } from '../../../src/records/page/page-plan.ts';
import type { Collection, MemberAction, WriteAction } from '../../../src/schema/model/model.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { dependsOnOrder, goingWith } from '../../oracle/deletion.ts';
import { historySeen } from '../../oracle/history.ts';
import {
  answered,
  isPermitted,
  isReadable,
  isReferable,
  judge,
  type MemberOperation,
  rowOf,
  type Standing,
  seen,
  type Write,
} from '../../oracle/judge.ts';
import { type DeletedRecord, isRestorable, restored } from '../../oracle/restored.ts';
import { compileForm, Rejected } from '../policies/differential.ts';
import { PolicyMaker, type Setting, SPAN } from '../policies/policies.ts';
import { callerOr, randomRequest } from '../policies/requests.ts';
import { NOW } from '../policies/values.ts';
import type { World } from '../policies/world.ts';
import { Random } from '../random.ts';
import { changeTypes, ensureReferences, makeAdopted, withAdopted } from './adopted-schema.ts';
import { inCompany } from './company.ts';
import { fill, PLAIN, randomSchema, readAll, STAGES, type Stocked, writableValue } from './doors-world.ts';
import { explainedStatus, isExplained, type RulesOfStore } from './explained.ts';
import { deletedWorld, isChange, isWhole, keptText, readChanges, readDeleted } from './kept-records.ts';
import { datetimeAfter, IS_FORMER, lostReferences, ofFormerStates, ofLostId, ofReferredTo } from './kept-rules.ts';
import { touching, withKept } from './kept-schema.ts';
import { allIds, asId, idColumn, idParam, idsOf, makeNext, makerOfKey, newId, withKeys } from './keyed-schema.ts';
import { placeBeside } from './own-schema.ts';
import { makeOwned, OWNED, withOwned } from './owned-schema.ts';
import { withReferences } from './referring-schema.ts';
import type { Doors } from './store-modules.ts';
import { isFoundBy, randomUpsert, type Upsert } from './upserts.ts';
import { fromAnswer, inBody, WHOLE_FIELDS } from './whole-values.ts';

export interface DoorCounts {
  worlds: number;
  writes: number;
  allowed: number;
}
export interface DoorRun {
  readonly doors: Doors;
  readonly seed: number;
  readonly counts: DoorCounts;
  isOver(): boolean;
}

const WRITES = 120;
/** The shares of writes that are upserts and, where records are deleted, restores. */
const UPSERTS = 0.2;
const RESTORES = 0.12;
/** The share of writes after which a history is read. */
const HISTORIES = 0.35;
/** The share of updates and deletes that find their record by a filter. */
const BY_FILTER = 0.2;
/** The share of writes whose explanation is compared. An update is of two records. */
const EXPLAINED: Readonly<Record<Write['action'], number>> = { create: 0.04, update: 0.2, delete: 0.02 };

/**
 * Runs a world of writes in a database without tables. The first disagreement in full; undefined if
 * there is none.
 */
export async function runDoors(number: number, db: Database, run: DoorRun): Promise<string | undefined> {
  const random = new Random((run.seed * 1_000_033 + number * 7907) >>> 0);
  const keyed = withKeys(withKept(randomSchema(random, WHOLE_FIELDS), PLAIN, random), PLAIN, random);
  const whole = withOwned(withReferences(keyed, random), PLAIN, random);
  // Worlds without such tables do not depend on it.
  const adopting = new Random((run.seed * 999_983 + number * 6_007) >>> 0);
  const { sql } = run.doors.compiler;
  const [own] = await db.rows(sql.sql`SELECT current_schema()`);
  const text = withAdopted(whole, PLAIN, placeBeside(own![0]!), adopting);
  const { schema: declared, issues } = run.doors.parseSchema(text);
  if (declared === undefined) throw new Error(`the schema of the fuzz has errors: ${JSON.stringify(issues)}`);
  const made = { doors: run.doors, schema: declared, db };
  await makeOwned(made, random);
  await makeAdopted(made);
  await run.doors.applyMigration(db, declared, { systemTables: run.doors.historyTables });
  const ensured = await ensureReferences(made, adopting);
  const declaredWorld = { ...made, db: inCompany(db, random, run.doors), ensured };
  await fill(declaredWorld, random);
  await changeTypes(made, adopting);
  const schema = await run.doors.schemaServedBy(db, declared);
  const stocked = { ...declaredWorld, schema };
  run.counts.worlds++;
  const session = new Session(stocked, random);
  for (let i = 0; i < WRITES && !run.isOver(); i++) {
    const found = await session.next(run.counts);
    if (found !== undefined) return `${found}\n  again       seed ${run.seed}, world ${number} of the doors`;
  }
  return undefined;
}

class Session {
  readonly #stocked: Stocked;
  readonly #random: Random;
  readonly #makers = new Map<string, PolicyMaker>();
  #data: Data | undefined;
  /** The rules of records, and the write, need the record itself alone, so that one statement can be enough. */
  #isSimple = false;
  /** Otherwise those of records decide alone. */
  #hasMemberRules = false;
  /** The write names its record by a filter, which finds what the caller may list. */
  #isByFilter = false;
  /** The clock of most requests goes on, so that a write changes the time of each record that it touches. */
  #seconds = 0;

  constructor(stocked: Stocked, random: Random) {
    this.#stocked = stocked;
    this.#random = random;
  }

  async next(counts: DoorCounts): Promise<string | undefined> {
    const before = this.#data ?? (await readAll(this.#stocked));
    this.#isSimple = this.#random.chance(0.3);
    this.#hasMemberRules = this.#random.chance(0.55);
    const restoration = this.#random.chance(RESTORES) ? await this.#restoration(before) : undefined;
    if (restoration !== undefined) return this.#restore(restoration, before, counts);
    const upsert = this.#random.chance(UPSERTS) ? this.#upsert(before) : undefined;
    let write: Write = upsert?.write ?? this.#write(before);
    const request = this.#request(write, before);
    const kept = upsert?.holder && upsert.field.name;
    const rules = this.#rulesFor({ data: before, write, kept });
    const standing = { catalog: this.#stocked.schema, data: before, request, rules };
    this.#isByFilter =
      upsert === undefined &&
      write.action !== 'create' &&
      write.isCurrent === undefined &&
      this.#random.chance(BY_FILTER);
    const isFound = this.#isByFilter
      ? seen(write.collection, {}, standing).some((record) => record.id === write.id)
      : upsert === undefined || isFoundBy(upsert, { ...standing, request: { ...request, data: undefined } });
    const explained =
      upsert === undefined &&
      !this.#isByFilter &&
      this.#random.chance(EXPLAINED[write.action]) &&
      isOfOneRequest(write, rules)
        ? await explainedStatus(this.#stocked, { write, request, rules })
        : undefined;
    const caller = { id: principalOf(request), isKept: true };
    const { error, detail, answer, made } = await this.#stocked.doors.asCaller(caller, () => {
      if (upsert !== undefined) return this.#performUpsert(upsert, request, rules);
      return this.#isByFilter ? this.#performByFilter(write, request, rules) : this.#perform(write, request, rules);
    });
    if (made !== undefined && write.action === 'create') write = { ...write, id: made };
    const expected = isFound ? judge(write, standing) : undefined;
    const isExplicable = error === 'forbidden' && !this.#isByFilter && isFound;
    const reason = isExplicable ? reasonOf(write, standing, rules) : undefined;
    if (reason !== undefined && !reason.includes(detail ?? '')) {
      return [
        `DISAGREEMENT: the message of a denial, expected one of ${reason.join(', ')}, found ${detail}`,
        `  write       ${JSON.stringify(write, (key, value) => (key === 'relation' ? value.name : value))}`,
        ...rules.lines(),
        `  request     ${JSON.stringify(request)}`,
        `  before      ${shown(before)}`,
      ].join('\n');
    }
    // A refusal that wrote something is found by one of the next looks.
    const isRead = error === undefined || expected !== undefined || this.#random.chance(0.2);
    const after = isRead ? await readAll(this.#stocked) : before;
    this.#data = after;
    counts.writes++;
    if (expected !== undefined) counts.allowed++;
    const wanted = shown(expected ?? before);
    if (
      explained !== undefined &&
      !isExplained(explained, write, {
        isAllowed: expected !== undefined,
        isReferable: isReferable(write, standing),
        error,
      })
    ) {
      return [
        `DISAGREEMENT: explain, ${explained}, while the store ${error === undefined ? 'allowed' : `refused (${error})`}`,
        `  write       ${JSON.stringify(write, (key, value) => (key === 'relation' ? value.name : value))}`,
        ...rules.lines(),
        `  request     ${JSON.stringify(request)}`,
        `  before      ${shown(before)}`,
      ].join('\n');
    }
    const isTold = isVersionTold(write, standing, error);
    if (isTold && (error === undefined) === (expected !== undefined) && wanted === shown(after)) {
      const now = { ...standing, data: after };
      const told = answer && sorted([answered(write, now)]);
      if (answer !== undefined && sorted([answer]) !== told) {
        return [
          'DISAGREEMENT: the store, in the answer to a write',
          ...rules.lines(),
          `  request     ${JSON.stringify(request)}`,
          `  expected    ${told}`,
          `  found       ${sorted([answer])}`,
        ].join('\n');
      }
      return this.#lookAround({ write, before }, now);
    }
    return [
      `DISAGREEMENT: the store, ${expected === undefined ? 'refused' : 'allowed'} by the judge, ` +
        `${error === undefined ? 'allowed' : `refused (${error})`} by the store${isTold ? '' : ', in what it says of the version'}`,
      `  write       ${JSON.stringify(write, (key, value) => (key === 'relation' ? value.name : value))}`,
      ...rules.lines(),
      `  request     ${JSON.stringify(request)}`,
      `  before      ${shown(before)}`,
      `  expected    ${wanted}`,
      `  found       ${shown(after)}`,
    ].join('\n');
  }

  /** The records after the write, and what is kept beside them. */
  async #lookAround({ write, before }: Done, now: RandomStanding): Promise<string | undefined> {
    const owned = this.#stocked.schema.collections.has('parts') ? OWNED : [];
    const looked = this.#random.pick([write.collection, write.collection, ...PLAIN, ...owned]);
    return (
      (await this.#look(looked, now.request, now)) ??
      (await this.#lookAtDeleted(write, before, now)) ??
      (await this.#lookAtHistory(write, before, now))
    );
  }

  /** The code of a refusal, or the answer where the write was made. Any other error is a defect. */
  async #perform(write: Write, request: PolicyRequest, rules: RandomRules): Promise<Performed> {
    const { doors, schema, db } = this.#stocked;
    const ask = this.#accessTo(write.collection, request, rules);
    const records = doors.createRecords(db, schema);
    const data = request.data as Row;
    await this.#makeNext(write);
    const ifVersion = await this.#versionsFor(write);
    return outcomeOf(async () => {
      const own = String(write.id);
      if (write.action === 'delete') {
        await records.remove(ask, { id: own, ifVersion });
        return {};
      }
      const given: Readonly<Record<string, string>> = makerOfKey(ask.collection) === 'service' ? { id: own } : {};
      const { id, json } =
        write.action === 'create'
          ? await records.create(ask, { data, relations: [], given })
          : await records.update(ask, { id: own, data, relations: [], errors: [], ifVersion });
      return { answer: this.#answered(write.collection, id, json) };
    });
  }

  async #performUpsert(upsert: RandomUpsert, request: PolicyRequest, rules: RandomRules): Promise<Performed> {
    const { doors, schema, db } = this.#stocked;
    const { collection, field, data } = upsert;
    const accessTo = (body?: Row) => this.#accessTo(collection, { ...request, data: body }, rules);
    const access = { read: accessTo(), create: accessTo, update: accessTo };
    const asked = { field, data, relations: [] };
    const records = doors.createRecords(db, schema);
    await this.#makeNext(upsert.write);
    return outcomeOf(async () => {
      const { written } = this.#random.chance(0.5)
        ? await records.batch({ values: [], rows: [] }, (batch) => batch.upsert(access, asked))
        : await records.upsert(access, asked, principalOf(request));
      const { id, json } = written;
      const made = asId(schema.collections.get(collection)!, id);
      return { made, answer: this.#answered(collection, id, json) };
    });
  }

  /** A refused record undoes the request, or is skipped; the request finds no other record. */
  async #performByFilter(write: Write, request: PolicyRequest, rules: RandomRules): Promise<Performed> {
    const { doors, schema, db } = this.#stocked;
    const access = this.#accessTo(write.collection, request, rules);
    const place = { catalog: schema, collection: write.collection, params: { id: write.id } };
    const { filter } = doors.compileFilter('id = $id', place);
    const data = write.action === 'delete' ? {} : { data: request.data as Row };
    const skipsRefused = this.#random.chance(0.5);
    const asked = { list: access, access, filter, limit: 2, skipsRefused, ...data };
    try {
      const { matched, changed } = await doors.createRecords(db, schema).matching(asked, (outcome) => {
        if (outcome.isRefused) throw Object.assign(new Error('a record is refused'), { code: 'refused', errors: [] });
        return Promise.resolve(outcome);
      });
      if (matched > 1) return { error: 'other records are found' };
      return changed === 1 ? {} : { error: matched === 0 ? 'nothing is found' : 'skipped' };
    } catch (error) {
      const { code, errors } = error as Error & { code?: string; errors?: readonly unknown[] };
      if (errors === undefined) throw error;
      return { error: `${code}` };
    }
  }

  /**
   * The version that the caller names: the record's, or a stale one of an earlier or later state,
   * or that of another record.
   */
  async #versionsFor({ collection, id, isCurrent }: Write): Promise<readonly string[] | undefined> {
    if (isCurrent === undefined) return undefined;
    const { doors, schema, db } = this.#stocked;
    const { sql, ident } = doors.compiler.sql;
    const random = this.#random;
    const own = schema.collections.get(collection)!;
    const keyed = { doors, collection: own };
    const hasId = sql`${idColumn(keyed)} = ${idParam(keyed, id)}`;
    const rows = await db.rows(sql`SELECT ${ident('_version')} FROM ${ident(own.table)} WHERE ${hasId}`);
    const count = Number(rows[0]![0]);
    const versions = await new doors.Store(db, schema).versions(db);
    const versionOf = (change: number, record = id): string =>
      versions.of({ collection, id: String(record), count: String(count + change) });
    const stale = [versionOf(1), versionOf(-1), versionOf(0, newId(own, random, [id]))].filter(() =>
      random.chance(0.5),
    );
    return isCurrent ? random.shuffled([versionOf(0), ...stale]) : stale;
  }

  #accessTo(name: string, request: PolicyRequest, rules: RandomRules): AccessContext {
    const { doors, schema } = this.#stocked;
    const permits = new Map<string, Permit>();
    const permit = (collection: string, action: Action): Permit => {
      const key = `${collection} ${action}`;
      const made = permits.get(key) ?? doors.decide({ rules: rules.policies(collection, action), request });
      permits.set(key, made);
      return made;
    };
    const member = (collection: string, own: string, action: MemberAction): Permit | undefined => {
      const policies = rules.ofMember(collection, own, action)?.map(({ policy }) => policy);
      return policies && doors.decide({ rules: policies, request });
    };
    const prospect = () => ({ certain: permit(name, 'update'), possible: permit(name, 'update') });
    return {
      collection: schema.collections.get(name)!,
      permit,
      member,
      denialMessage: (of, action, own) =>
        own === undefined ? doors.denialMessage(rules.policies(of, action), request) : undefined,
      violation: (of, { transitions, violated }, action) => {
        const random = rules.violated(of, action).map(({ policy }) => policy);
        return doors.decide({ rules: transitions === undefined ? random : violated[action], request });
      },
      prospect,
      auth: request.auth!,
      kind: request.kind ?? 'user',
      principal: principalOf(request),
      now: request.now,
    };
  }

  // -------------------------------------------------------------- what is kept

  /** The access by which former states of the collection's records are read. */
  #formerAccess(name: string, request: PolicyRequest, rules: RandomRules): AccessContext {
    const { doors, schema } = this.#stocked;
    const access = this.#accessTo(name, request, rules);
    const decided = (policies: readonly Policy[]): Permit =>
      doors.decide({ rules: doors.keptRules(policies, { catalog: schema, collection: name }, 'read'), request });
    return {
      ...access,
      permit: (of, action) =>
        of === name && action === 'read' ? decided(rules.policies(of, action)) : access.permit(of, action),
      member: (of, member, action) => {
        const policies = rules.ofMember(of, member, action)?.map(({ policy }) => policy);
        return of === name && action === 'read' && policies ? decided(policies) : access.member(of, member, action);
      },
    };
  }

  /** A deleted record of some collection; undefined if it has none. */
  async #restoration(data: Data): Promise<Restoration | undefined> {
    const { schema } = this.#stocked;
    const names = PLAIN.filter((name) => schema.collections.get(name)!.softDelete !== undefined);
    if (names.length === 0) return undefined;
    const collection = this.#random.pick(names);
    const all = await readDeleted(this.#stocked, collection);
    if (all.length === 0) return undefined;
    const world = deletedWorld(this.#stocked, collection, all, data);
    const lost = all.filter(({ row }) => lostReferences(schema.collections.get(collection)!, row, data).length > 0);
    const record = this.#random.pick(lost.length > 0 && this.#random.chance(0.7) ? lost : all);
    return { record, all, world };
  }

  async #restore({ record, all, world }: Restoration, before: Data, counts: DoorCounts): Promise<string | undefined> {
    const { doors, schema, db } = this.#stocked;
    const { collection, row } = record;
    const id = row.id as Id;
    const write: Write = { action: 'delete', collection, id, values: {}, partners: [], members: [] };
    const request = this.#request(write, before);
    const rules = this.#rulesFor({ data: before, write });
    const standing = { catalog: schema, data: before, request, rules };
    const setting: Setting = { catalog: world.catalog, collection, action: 'list' };
    const restoring = this.#restoreRules(setting, world.data, row);
    const isFound = isRestorable(row, { ...world, request, rules: restoring });
    const expected = isFound ? restored(record, standing) : undefined;
    const deleted = doors.deletedRecordsOf(db, schema)(collection)!;
    const living = this.#accessTo(collection, request, rules);
    const asked = restoring.map(({ policy }) => policy);
    const permit = doors.decide({ rules: doors.keptRules(asked, { ...world, collection }, 'list'), request });
    const access: AccessContext = {
      ...living,
      collection: deleted.collection,
      permit: (of, action) => (of === collection ? permit : living.permit(of, action)),
    };
    const { error } = await doors.asCaller({ id: principalOf(request), isKept: true }, () =>
      outcomeOf(() => deleted.restore(access, String(id)).then(() => ({}))),
    );
    const after = await readAll(this.#stocked);
    const left = await readDeleted(this.#stocked, collection);
    this.#data = after;
    counts.writes++;
    if (expected !== undefined) counts.allowed++;
    const wanted = shown(expected ?? before);
    const isHidden = (error === 'not_found') === !isFound;
    const isGone = left.length === all.length - (expected === undefined ? 0 : 1);
    if (isHidden && isGone && (error === undefined) === (expected !== undefined) && wanted === shown(after))
      return this.#lookAround({ write, before }, { ...standing, data: after });
    return [
      `DISAGREEMENT: a restore, ${expected === undefined ? 'refused' : 'allowed'} by the judge, ` +
        `${error === undefined ? 'allowed' : `refused (${error})`} by the store, ${left.length} of ${all.length} left`,
      `  restored    ${collection} ${JSON.stringify(row)} ${JSON.stringify([...record.links])}`,
      ...restoring.map(({ policy }) => `  restore     ${policy.text}`),
      ...rules.lines(),
      `  request     ${JSON.stringify(request)}`,
      `  before      ${shown(before)}`,
      `  expected    ${wanted}`,
      `  found       ${shown(after)}`,
    ].join('\n');
  }

  #restoreRules(setting: Setting, data: Data, row: Row): readonly RandomRule[] {
    const random = this.#random;
    const ofReferred = random.chance(0.5) ? ofReferredTo(setting, random, row, data) : undefined;
    const drawn = ofReferred && this.#compiledIn(setting, ofReferred);
    if (drawn !== undefined) return [drawn];
    if (random.chance(0.4)) return [this.#compiledIn(setting, random.chance(0.7) ? TRUE : IS_OPEN)!];
    const ids = allIds(this.#stocked.schema, data);
    const maker = new PolicyMaker(setting, { random, ids });
    const made: RandomRule[] = [];
    for (const wanted = random.pick([1, 2]); made.length < wanted; ) {
      const rule = this.#compiledIn(setting, maker.make());
      if (rule !== undefined) made.push(rule);
    }
    return made;
  }

  /** The deleted record is kept as it was, with its links to records that stay. */
  async #lookAtDeleted({ action, collection, id }: Write, before: Data, now: Standing): Promise<string | undefined> {
    const { schema } = this.#stocked;
    const row = rowOf(before, collection, id);
    const isKept = schema.collections.get(collection)!.softDelete !== undefined;
    if (action !== 'delete' || !isKept || row === undefined) return undefined;
    if (rowOf(now.data, collection, id) !== undefined) return undefined;
    const kept = (await readDeleted(this.#stocked, collection)).find((each) => each.row.id === id);
    const expected = keptText(schema, before, { collection, row, links: before.links });
    const found = kept && keptText(schema, before, kept);
    if (found === expected) return undefined;
    return [
      `DISAGREEMENT: a deleted record that is kept, of ${collection}`,
      `  before      ${shown(before)}`,
      `  expected    ${expected}`,
      `  found       ${found}`,
    ].join('\n');
  }

  /** The changes are whole, and the caller sees of each state what it may read now. */
  async #lookAtHistory(write: Write, before: Data, now: RandomStanding): Promise<string | undefined> {
    const { doors, schema, db } = this.#stocked;
    const random = this.#random;
    const names = PLAIN.filter((name) => schema.collections.get(name)!.history !== undefined);
    if (names.length === 0 || !random.chance(write.action === 'delete' ? 0.9 : HISTORIES)) return undefined;
    const left = write.action === 'delete' ? this.#leftBy(write, before, names, now.data) : undefined;
    const isOwn = left === undefined && names.includes(write.collection) && random.chance(0.7);
    const other = isOwn ? write : (left ?? this.#someOf(random.pick(names), now.data));
    const { collection, id } = other;
    const changes = await readChanges(this.#stocked, collection, id);
    const present = rowOf(now.data, collection, id);
    const isNew = isOwn && isChange(rowOf(before, collection, id), present);
    const isWritten = isNew ? changes[0]?.by === principalOf(now.request) : true;
    const expected = historySeen(collection, id, changes, now);
    const access = this.#formerAccess(collection, now.request, now.rules);
    const asked = doors.createRecords(db, schema).history(access, { id: String(id), limit: 1000 });
    const found = await asked.then(
      ({ entries }) =>
        entries.map((entry) => {
          const { before: was, after: is, ...told } = JSON.parse(entry);
          return { ...told, before: was && this.#asSeen(collection, was), after: is && this.#asSeen(collection, is) };
        }),
      (error: { readonly code?: string }) => {
        if (error.code === 'not_found') return undefined;
        throw error;
      },
    );
    const told = found?.map(({ at: _, changed, ...entry }) => ({
      ...entry,
      changed: (changed as readonly string[]).toSorted(),
    }));
    const texts = [expected, told].map((entries) => entries && sortedDeep(entries));
    if (isWhole(changes, present) && isWritten && texts[0] === texts[1]) return undefined;
    return [
      `DISAGREEMENT: a history of ${collection}${isWhole(changes, present) ? '' : ', which lacks a change'}${isWritten ? '' : ', of another caller'}`,
      ...now.rules.lines(),
      `  request     ${JSON.stringify(now.request)}`,
      `  record      ${JSON.stringify(present)}`,
      `  changes     ${JSON.stringify(changes)}`,
      `  data        ${shown(now.data)}`,
      `  expected    ${texts[0]}`,
      `  found       ${texts[1]}`,
    ].join('\n');
  }

  #someOf(collection: string, data: Data): { readonly collection: string; readonly id: Id } {
    const { collections } = this.#stocked.schema;
    return { collection, id: this.#random.pick(idsOf(collections.get(collection)!, data.rows.get(collection)!)) };
  }

  /** A record that referred to the deleted one, and stays. */
  #leftBy(gone: Write, before: Data, names: readonly string[], after: Data) {
    const { collections } = this.#stocked.schema;
    const left = names.flatMap((collection) => {
      const held = [...collections.get(collection)!.relations.values()].filter(
        (relation) => relation.kind === 'belongs_to' && relation.collection === gone.collection,
      );
      return before.rows
        .get(collection)!
        .filter((row) => held.some(({ name }) => row[name] === gone.id) && rowOf(after, collection, row.id as Id))
        .map((row) => ({ collection, id: row.id as Id }));
    });
    return left.length === 0 ? undefined : this.#random.pick(left);
  }

  // -------------------------------------------------------------- the view

  /** A list of a collection, with a filter or without: it shows what the rules of records and members leave. */
  async #look(collection: string, request: PolicyRequest, standing: Standing): Promise<string | undefined> {
    const { doors, schema, db } = this.#stocked;
    const rules = standing.rules as RandomRules;
    const filter = this.#filter(collection, standing.data);
    const { fields, relations } = schema.collections.get(collection)!;
    const exact = Object.entries(filter).map(([name, value]): ExactFilter => {
      const relation = relations.get(name);
      return relation?.kind === 'belongs_to'
        ? { kind: 'belongs_to', relation, value: value as string }
        : { kind: 'field', field: fields.get(name)!, value: value as string };
    });
    const asked = { exact, limit: 100, offset: 0 };
    const ask = this.#accessTo(collection, request, rules);
    const { json } = await doors.createRecords(db, schema).list(ask, asked);
    const [found, expected] = [
      sorted((JSON.parse(String(json)) as readonly Row[]).map((row) => this.#asSeen(collection, row))),
      sorted(seen(collection, filter, standing)),
    ];
    if (found === expected) return undefined;
    return [
      'DISAGREEMENT: the store, in what a list shows',
      `  list        ${collection} ${JSON.stringify(filter)}`,
      ...rules.lines(),
      `  request     ${JSON.stringify(request)}`,
      `  data        ${shown(standing.data)}`,
      `  expected    ${expected}`,
      `  found       ${found}`,
    ].join('\n');
  }

  /** The id alone, where the caller may not read the record. */
  #answered(collection: string, id: string, json: unknown): Row {
    if (json !== undefined) return this.#asSeen(collection, JSON.parse(String(json)));
    return { id: asId(this.#stocked.schema.collections.get(collection)!, id) };
  }

  async #makeNext({ action, collection, id }: Write): Promise<void> {
    const made = this.#stocked.schema.collections.get(collection)!;
    if (action === 'create' && makerOfKey(made) === 'database') await makeNext(this.#stocked, made, id);
  }

  /** The record of an answer, as policies see it. */
  #asSeen(collection: string, row: Row): Row {
    const { fields } = this.#stocked.schema.collections.get(collection)!;
    return Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, fromAnswer(fields.get(name) ?? { type: 'string' }, value)]),
    );
  }

  /** The value of some record, or nothing. */
  #filter(collection: string, data: Data): Row {
    const random = this.#random;
    const { memberAccess } = this.#stocked.schema.collections.get(collection)!;
    const records = data.rows.get(collection)!;
    if (records.length === 0) return {};
    const record = random.pick(records);
    const names = [...memberAccess.keys()].filter((name) => record[name] !== null && !(name in WHOLE_FIELDS));
    if (names.length === 0 || random.chance(0.5)) return {};
    const name = random.pick(names);
    return { [name]: record[name] };
  }

  // -------------------------------------------------------------- the write

  #write(data: Data): Write {
    const random = this.#random;
    const wanted = random.pick(ACTIONS);
    const collection = wanted === 'update' && random.chance(0.15) ? 'users' : random.pick(PLAIN);
    const own = data.rows.get(collection)!;
    // The rest is enough for rules to walk.
    const action = own.length === 0 || (wanted === 'delete' && own.length < 3) ? 'create' : wanted;
    const made = this.#stocked.schema.collections.get(collection)!;
    const id = action === 'create' ? newId(made, random, idsOf(made, own)) : (random.pick(own).id as Id);
    if (action === 'delete') return this.#deletion(data, collection, id);
    const isPlain = this.#isSimple;
    const write = {
      action,
      collection,
      id,
      values: this.#values(made, action, data),
      partners: isPlain ? [] : this.#partners(made, data),
      members: isPlain ? [] : this.#members(made, data, { action, id }),
      isCurrent: action === 'create' ? undefined : this.#isCurrent(made),
    } as const;
    const isEmpty = Object.keys(write.values).length + write.partners.length + write.members.length === 0;
    return isEmpty ? this.#write(data) : write;
  }

  /** Undefined: nothing is unique. */
  #upsert(data: Data): RandomUpsert | undefined {
    const upsert = randomUpsert(this.#stocked.schema.collections, data, this.#random);
    if (upsert === undefined) return undefined;
    const { collection, key, holder } = upsert;
    const made = this.#stocked.schema.collections.get(collection)!;
    const action = holder === undefined ? 'create' : 'update';
    const rows = data.rows.get(collection)!;
    const id = holder === undefined ? newId(made, this.#random, idsOf(made, rows)) : (holder.id as Id);
    const isPlain = this.#isSimple;
    const related = {
      partners: isPlain ? [] : this.#partners(made, data),
      members: isPlain ? [] : this.#members(made, data, { action, id }),
    };
    const given = this.#values(made, this.#random.chance(0.4) ? 'create' : action, data);
    const others = Object.fromEntries(Object.entries(given).filter(([name]) => !Object.hasOwn(key, name)));
    // An update keeps the values by which it has found the record.
    const values = holder === undefined ? { ...others, ...key } : others;
    if (Object.keys(others).length + related.partners.length + related.members.length === 0) return undefined;
    const write: Write = { action, collection, id, values, ...related };
    return { ...upsert, write, data: bodyOf({ ...write, values: { ...others, ...key } }, made) };
  }

  #deletion(data: Data, collection: string, id: Id): Write {
    const stored = { catalog: this.#stocked.schema, data };
    const made = this.#stocked.schema.collections.get(collection)!;
    if (dependsOnOrder(stored, goingWith(stored, { collection, id }))) return this.#write(data);
    return {
      action: 'delete',
      collection,
      id,
      values: {},
      partners: [],
      members: [],
      isCurrent: this.#isCurrent(made),
    };
  }

  /**
   * True if the version that the caller names is the record's; undefined, mostly, if it names none.
   */
  #isCurrent({ countsChanges }: Collection): boolean | undefined {
    // Otherwise the version is that of the record as its reader sees it.
    if (!countsChanges) return undefined;
    return this.#random.pick([undefined, undefined, undefined, true, false]);
  }

  #values(collection: Collection, action: Write['action'], data: Data): Row {
    const random = this.#random;
    const { fields, relations } = collection;
    const values: Record<string, unknown> = {};
    const share = random.pick([0, 0.2, 0.5]);
    // A create without references may be one plain statement.
    const absence = action === 'create' && this.#isSimple ? 0.8 : 0.25;
    for (const field of fields.values()) {
      const { name, needed, readOnly } = field;
      if (readOnly) continue;
      if (action === 'create' || random.chance(share))
        values[name] = !needed && random.chance(0.25) ? null : writableValue(field, random);
    }
    Object.assign(values, random.chance(0.3) && touching(collection, data.rows.get(collection.name)!, random));
    for (const relation of relations.values()) {
      if (relation.kind !== 'belongs_to') continue;
      if (action === 'create' || random.chance(share))
        values[relation.name] =
          !relation.needed && random.chance(absence) ? null : this.#idOf(relation.collection, data, relation.unique);
    }
    return values;
  }

  #partners({ relations }: Collection, data: Data): Write['partners'] {
    const random = this.#random;
    return [...relations.values()].flatMap((relation) => {
      if (relation.kind !== 'has_one' || random.chance(0.5)) return [];
      return [{ relation, id: random.chance(0.3) ? null : this.#idOf(relation.collection, data, false) }];
    });
  }

  #members({ relations }: Collection, data: Data, { action, id }: Pick<Write, 'action' | 'id'>): Write['members'] {
    const random = this.#random;
    return [...relations.values()].flatMap((relation): MemberOperation[] => {
      if (relation.kind !== 'many_to_many' || random.chance(0.35)) return [];
      const some = () => Array.from({ length: random.below(4) }, () => this.#idOf(relation.collection, data, false)!);
      const links = data.links.get(relation.linkTable) ?? [];
      const own = () => links.flatMap(([source, target]) => (source === id && random.chance(0.5) ? [target] : []));
      const replaces = random.chance(0.4);
      const operation = {
        relation,
        ...(replaces && { set: some() }),
        ...((!replaces || random.chance(0.3)) && { add: some() }),
        ...((action === 'update' || random.chance(0.3)) && random.chance(0.6) && { remove: [...some(), ...own()] }),
      };
      return [operation];
    });
  }

  /** The id of a stored record; for a unique reference, often one that is not referenced yet. */
  #idOf(collection: string, data: Data, isUnique: boolean): Id | null {
    const rows = data.rows.get(collection)!;
    if (rows.length === 0) return null;
    return isUnique && this.#random.chance(0.3) ? null : (this.#random.pick(rows).id as Id);
  }

  // -------------------------------------------------------------- the request and its rules

  #request(write: Write, data: Data): PolicyRequest {
    const random = this.#random;
    const world = { catalog: this.#stocked.schema, data } as unknown as World;
    const request = randomRequest(world, this.#setting(write.collection, write.action), random);
    // Callers who write their own record are judged as they were before the write.
    const users = data.rows.get('users')!;
    const auth =
      write.collection === 'users' && random.chance(0.5) ? users.find(({ id }) => id === write.id)! : undefined;
    const caller = auth === undefined ? callerOr(request, random.pick(users)) : { auth, kind: 'user' as const };
    return {
      ...request,
      ...caller,
      now: request.now === NOW && random.chance(0.8) ? datetimeAfter(NOW, ++this.#seconds) : request.now,
      data:
        write.action === 'delete' ? undefined : bodyOf(write, this.#stocked.schema.collections.get(write.collection)!),
    };
  }

  #rulesFor(about: About): RandomRules {
    return new RandomRules({
      of: (collection, action) => this.#rules(collection, action, about),
      ofMember: (collection, member, action) => this.#memberRules(collection, member, { action, about }),
      violated: (collection, action) => this.#violated(collection, action, about),
    });
  }

  #setting(collection: string, action: Action): Setting {
    return { catalog: this.#stocked.schema, collection, action };
  }

  #rules(collection: string, action: Action, about: About): readonly RandomRule[] {
    const random = this.#random;
    // A deletion leaves references of former states to a record that is gone.
    const share = about.write.action === 'delete' ? 0.35 : 0.1;
    if (action === 'read' && PLAIN.includes(collection) && random.chance(share)) {
      const former = this.#compiled(collection, action, ofFormerStates(this.#setting(collection, action), random));
      // A table of another program may have no time of changes.
      if (former !== undefined) return [former];
    }
    const ofLost = action === 'list' ? ofLostId(this.#setting(collection, action), random) : undefined;
    if (ofLost !== undefined) return [this.#compiled(collection, action, ofLost)!];
    if (random.chance(this.#isSimple ? 0.85 : action === 'read' ? 0.7 : 0.15))
      return [this.#compiled(collection, action, TRUE)!];
    const isOfWrite = action === 'update' && collection === about.write.collection;
    const crossed = isOfWrite && random.chance(0.3) ? this.#crossed(about.write) : [];
    if (crossed.length > 0) return crossed;
    return Array.from({ length: random.pick([1, 2, 2, 3]) }, () => this.#rule(collection, action, about));
  }

  /**
   * Two rules: what the write makes of a field, and the opposite. If the write changes the field,
   * each rule holds for one of the two records, and neither for both.
   */
  #crossed({ collection, values }: Write): readonly RandomRule[] {
    const given = Object.entries(values).filter(([, value]) => value !== null);
    if (given.length === 0) return [];
    const [field, value] = this.#random.pick(given);
    const left = { kind: 'path', root: 'record', steps: [{ name: field, span: SPAN }], span: SPAN } as const;
    const is: Expr = { kind: 'compare', op: '=', opSpan: SPAN, left, right: literalOf(value), span: SPAN };
    const rules = this.#random.shuffled<Expr>([is, { kind: 'not', item: is, span: SPAN }]);
    return rules.map((rule) => this.#compiled(collection, 'update', rule)).filter((rule) => rule !== undefined);
  }

  /** Undefined where the schema declares none, and sometimes where it does. */
  #memberRules(
    collection: string,
    member: string,
    { action, about }: { readonly action: MemberAction; readonly about: About },
  ): readonly RandomRule[] | undefined {
    const { memberAccess, fields } = this.#stocked.schema.collections.get(collection)!;
    const declared = memberAccess.get(member);
    if (action === 'update' && member === about.kept && declared?.update && this.#random.chance(0.3)) return [];
    if (declared?.[action] === undefined || !this.#hasMemberRules || this.#random.chance(0.3)) return undefined;
    if (this.#random.chance(0.1)) return [];
    const hasTime = PLAIN.includes(collection) && fields.has('updated_at');
    if (action === 'read' && hasTime && this.#random.chance(0.12))
      return [this.#compiled(collection, action, IS_FORMER)!];
    // In a write of a single statement, rules of members show most if they read other records.
    const share = this.#isSimple && action !== 'read' ? 1 : 0.3;
    const plain = this.#isSimple && action === 'read' ? this.#plainMask(collection) : undefined;
    if (plain !== undefined) return [this.#compiled(collection, action, plain)!];
    const simple = this.#random.chance(0.4) || !PLAIN.includes(collection) ? TRUE : IS_OPEN;
    if (this.#random.chance(share)) return [this.#compiled(collection, action, simple)!];
    return action === 'read' ? [this.#rule(collection, action, about)] : this.#rules(collection, action, about);
  }

  #rule(collection: string, action: Action, { data, write }: About): RandomRule {
    const isOfWrite = collection === write.collection && action === write.action && action !== 'delete';
    const direct = isOfWrite && this.#random.chance(0.35) ? this.#aboutHeld(write, data) : undefined;
    if (direct !== undefined) return this.#compiled(collection, action, direct)!;
    const key = `${collection} ${action}`;
    const ids = allIds(this.#stocked.schema, data);
    const maker =
      this.#makers.get(key) ?? new PolicyMaker(this.#setting(collection, action), { random: this.#random, ids });
    this.#makers.set(key, maker);
    for (;;) {
      const made = this.#compiled(collection, action, maker.make());
      if (made !== undefined) return made;
    }
  }

  /** The records that fail the check of a collection: mostly none. A rule of an update names `@next`. */
  #violated(collection: string, action: WriteAction, about: About): readonly RandomRule[] {
    if (!PLAIN.includes(collection) || this.#random.chance(0.6)) return [];
    for (let tries = 0; tries < 20; tries++) {
      const rule = this.#rule(collection, action, about);
      if (action === 'create' || rule.namesNext) return [rule];
    }
    return [];
  }

  /** A condition on the record alone, or on the caller alone. */
  #plainMask(collection: string): Expr | undefined {
    const roll = this.#random.next();
    if (roll < 0.35) return this.#ofCaller();
    if (roll > 0.8 || !PLAIN.includes(collection)) return undefined;
    return this.#random.chance(0.5) ? IS_OPEN : { kind: 'not', item: IS_OPEN, span: SPAN };
  }

  /** A condition that the caller has a related record at all, which no record shows. */
  #ofCaller(): Expr | undefined {
    const { relations } = this.#stocked.schema.collections.get('users')!;
    const many = [...relations.values()].filter(({ kind }) => kind === 'has_many' || kind === 'many_to_many');
    if (many.length === 0) return undefined;
    const steps = [{ name: this.#random.pick(many).name, span: SPAN }];
    const path = { kind: 'path', root: 'auth', steps, span: SPAN } as const;
    const variable = { name: 'm', span: SPAN };
    return { kind: 'quantified', quantifier: 'any', path, variable, condition: TRUE, span: SPAN };
  }

  /** A condition on the stored record, on the written record, or on both. */
  #aboutHeld(write: Write, data: Data): Expr | undefined {
    const after = this.#held(write, data, 'next');
    const before =
      write.action === 'update' && this.#random.chance(0.6) ? this.#held(write, data, 'record') : undefined;
    if (after === undefined || before === undefined) return after;
    return { kind: this.#random.pick(['and', 'and', 'or']), items: [before, after], span: SPAN };
  }

  /** A condition on a partner or a member, mostly one that the write names. */
  #held(
    { collection, partners, members }: Write,
    data: Data,
    root: Extract<Path['root'], 'record' | 'next'>,
  ): Expr | undefined {
    const random = this.#random;
    const held = [...this.#stocked.schema.collections.get(collection)!.relations.values()].filter(
      ({ kind }) => kind === 'has_one' || kind === 'many_to_many',
    );
    if (held.length === 0) return undefined;
    const { kind, name, collection: target } = random.pick(held);
    const spoken = [
      ...partners.filter(({ relation }) => relation.name === name).map(({ id }) => id),
      ...members.filter(({ relation }) => relation.name === name).flatMap(({ set, add, remove }) => [set, add, remove]),
    ].flat(2);
    const { collections } = this.#stocked.schema;
    const stored = idsOf(collections.get(target)!, data.rows.get(target)!).slice(0, 2);
    const ids = [...spoken.filter((id) => id != null), ...stored];
    const path = { kind: 'path', root, steps: [{ name, span: SPAN }], span: SPAN } as const;
    const right = literalOf(random.pick(ids));
    const op = kind === 'has_one' ? '=' : 'contains';
    const expr: Expr =
      kind === 'has_one' && random.chance(0.4)
        ? { kind: 'is null', negated: random.chance(0.5), operand: path, span: SPAN }
        : { kind: 'compare', op, opSpan: SPAN, left: path, right, span: SPAN };
    return random.chance(0.4) ? { kind: 'not', item: expr, span: SPAN } : expr;
  }

  /** Undefined where the checker refuses it. */
  #compiled(collection: string, action: Action, expr: Expr): RandomRule | undefined {
    return this.#compiledIn(this.#setting(collection, action), expr);
  }

  #compiledIn(setting: Setting, expr: Expr): RandomRule | undefined {
    try {
      const { compiler } = this.#stocked.doors;
      const { meant, generated, closures, text } = compileForm('it', expr, { setting, compiler, random: this.#random });
      const policy = this.#random.chance(0.5) ? generated : closures;
      const isSilent = this.#random.chance(0.3);
      const told = isSilent ? policy : { ...policy, message: `message ${this.#random.below(1_000_000)}` };
      return { policy: told, meant, namesNext: policy.namesNext, text };
    } catch (error) {
      if (!(error instanceof Rejected)) throw error;
      return undefined;
    }
  }
}

/** The subjects of the generated rules. */
interface About {
  readonly data: Data;
  readonly write: Write;
  /** The field by which an upsert finds its record, whose value it keeps. */
  readonly kept?: string | undefined;
}

const IS_OPEN: Expr = {
  kind: 'truth',
  operand: { kind: 'path', root: 'record', steps: [{ name: 'open', span: SPAN }], span: SPAN },
  span: SPAN,
};
const TRUE: Expr = { kind: 'truth', operand: { kind: 'bool', value: true, span: SPAN }, span: SPAN };

function literalOf(value: unknown): Operand {
  if (typeof value === 'boolean') return { kind: 'bool', value, span: SPAN };
  if (typeof value === 'number') return { kind: 'number', source: JSON.stringify(value), span: SPAN };
  return { kind: 'text', value: String(value), span: SPAN };
}

const ACTIONS = ['create', 'create', 'create', 'update', 'update', 'update', 'update', 'delete'] as const;

/** The rules of partners see no body, by the gate and by an explanation; those of the fuzz do. */
const isOfOneRequest = ({ partners }: Write, rules: RandomRules): boolean =>
  partners.every(({ relation: { collection, via } }) =>
    [
      ...rules.policies(collection, 'update'),
      ...(rules.ofMember(collection, via, 'update') ?? []).map(({ policy }) => policy),
    ].every(({ checked }) => !readsData(checked)),
  );

/** Another version than the record's is reported, and only to a caller whom the rules allow the write. */
function isVersionTold(write: Write, standing: Standing, error: string | undefined): boolean {
  if (write.isCurrent !== false) return error !== 'changed';
  const isOtherwiseAllowed = judge({ ...write, isCurrent: undefined }, standing) !== undefined;
  return error === 'changed' ? isPermitted(write, standing) : !isOtherwiseAllowed;
}

/**
 * The details that a denial may have. A caller who may not read the record gets no message; a write that its own rules allow is
 * denied for a partner.
 */
function reasonOf(write: Write, standing: Standing, rules: RandomRules): readonly string[] {
  const { action, collection, id } = write;
  if (isPermitted(write, standing)) return [STANDARD];
  if (action !== 'create' && !isReadable(collection, id, standing)) return [STANDARD];
  const all = rules.policies(collection, action);
  const open = all.filter((policy) => policy.specialise(standing.request).verdict !== 'deny');
  const [only, other] = open.length > 0 ? open : all;
  return [(other === undefined && only?.message) || STANDARD];
}
const STANDARD = 'the access rules do not allow this';

interface Performed {
  readonly error?: string;
  readonly detail?: string;
  readonly answer?: Row;
  /** The id of the record that an upsert has written. */
  readonly made?: Id;
}

/** A write, and the database before it. */
interface Done {
  readonly write: Write;
  readonly before: Data;
}
type RandomStanding = Standing & { readonly rules: RandomRules };

/** The upsert, what its request says, and the write that it comes to. */
type RandomUpsert = Upsert & { readonly data: Row; readonly write: Write };

const principalOf = ({ auth }: PolicyRequest): string => String(auth!.id);

/** The code of a refusal, or the outcome. Any other error is a defect. */
async function outcomeOf(work: () => Promise<Performed>): Promise<Performed> {
  try {
    return await work();
  } catch (error) {
    const { code, message, errors } = error as Error & { code?: string; errors?: readonly { code: string }[] };
    if (errors === undefined) throw error;
    return { detail: message, error: [code, ...errors.map((fault) => fault.code)].join(' ') };
  }
}

/** A deleted record to restore, among all of its collection. */
interface Restoration {
  readonly record: DeletedRecord;
  readonly all: readonly DeletedRecord[];
  readonly world: ReturnType<typeof deletedWorld>;
}

/** Equal for equal entries, in any order of their members. */
const sortedDeep = (entries: readonly Row[]): string =>
  JSON.stringify(entries, (_, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort())
      : value,
  );

/** Equal for equal records, in any order of their members. */
const sorted = (records: readonly Row[]): string =>
  JSON.stringify(records.map((record) => Object.entries(record).sort()));

interface RuleMaker {
  of(collection: string, action: Action): readonly RandomRule[];
  ofMember(collection: string, member: string, action: MemberAction): readonly RandomRule[] | undefined;
  violated(collection: string, action: WriteAction): readonly RandomRule[];
}

/** A rule for the store, and what the judge makes of it. */
interface RandomRule {
  readonly policy: Policy;
  readonly meant: Checked;
  readonly namesNext: boolean;
  /** Named conditions come before the rule that calls them. */
  readonly text: string;
}

/** Made when first asked for, and the same for the judge and for the store. */
class RandomRules implements RulesOfStore {
  readonly #make: RuleMaker;
  readonly #made = new Map<string, readonly RandomRule[]>();
  readonly #ofMembers = new Map<string, readonly RandomRule[] | undefined>();
  readonly #violated = new Map<string, readonly RandomRule[]>();

  constructor(make: RuleMaker) {
    this.#make = make;
  }

  policies(collection: string, action: Action): readonly Policy[] {
    return this.of(collection, action).map(({ policy }) => policy);
  }

  of(collection: string, action: Action): readonly RandomRule[] {
    const key = `${collection} ${action}`;
    const rules = this.#made.get(key) ?? this.#make.of(collection, action);
    this.#made.set(key, rules);
    return rules;
  }

  ofMember(collection: string, member: string, action: MemberAction): readonly RandomRule[] | undefined {
    const key = `${collection}.${member} ${action}`;
    if (!this.#ofMembers.has(key)) this.#ofMembers.set(key, this.#make.ofMember(collection, member, action));
    return this.#ofMembers.get(key);
  }

  violated(collection: string, action: WriteAction): readonly RandomRule[] {
    const key = `${collection} ${action} fails`;
    const rules = this.#violated.get(key) ?? this.#make.violated(collection, action);
    this.#violated.set(key, rules);
    return rules;
  }

  follows(member: string, before: unknown, after: unknown): boolean {
    if (member !== 'stage' || before === after || before === null) return true;
    return STAGES[String(before)]!.some((value) => value === after);
  }

  lines(): readonly string[] {
    return [...this.#made, ...this.#ofMembers, ...this.#violated].flatMap(([key, policies = []]) =>
      [...policies.map(({ text }) => text), ...(policies.length === 0 ? ['nobody, or no rule'] : [])].map(
        (text) => `  ${key.padEnd(12)}${text}`,
      ),
    );
  }
}

function bodyOf(
  { action, id, values, partners, members }: Write,
  { fields, key }: Pick<Collection, 'fields' | 'key'>,
): Row {
  const hasId = action === 'create' && makerOfKey({ key }) === 'caller';
  const given = Object.entries(values).map(([name, value]) => [
    name,
    inBody(fields.get(name) ?? { type: 'string' }, value),
  ]);
  return {
    ...(hasId && { id }),
    ...Object.fromEntries(given),
    ...Object.fromEntries(partners.map(({ relation, id }) => [relation.name, id])),
    ...Object.fromEntries(members.map(({ relation, ...operation }) => [relation.name, operation])),
  };
}

/** Equal for databases that hold the same. */
function shown({ rows, links }: Data): string {
  const byId = (a: Row, b: Row): number => (String(a.id) < String(b.id) ? -1 : 1);
  const tables = [...rows].map(([name, all]) => [name, all.toSorted(byId).map((row) => Object.entries(row).sort())]);
  const pairs = [...links].map(([name, all]) => [name, all.map((pair) => pair.join('→')).sort()]);
  return JSON.stringify([tables, pairs]);
}
