/**
 * The plan of a create or an update: the statement that decides and writes, made of the caller's rules
 * and the names of the members that are set. A plan serves all writes of a shape, so its statements
 * are forms.
 */
import type { Cells } from '../../database/contract.ts';
import { memoizedBy } from '../../memoized.ts';
import type { Permit } from '../../policy/access.ts';
import { join, Place, raw, type Sql, SqlForm, sql } from '../../sql.ts';
import { type AccessContext, accessIn, type Requested, type Store } from '../access-context.ts';
import { readableReferences } from '../constraint-errors.ts';
import type { RecordView } from '../record-view.ts';
import { type AnsweredPermits, type KnownPlan, ShapeMemory } from '../shape-memory.ts';
import { versionColumn } from '../versions.ts';
import { passesCreate, passesUpdate } from './checks.ts';
import type { ColumnValue, ReferencedId } from './input.ts';
import { hasTurn, turnName } from './locks/value-locks.ts';
import {
  hasCount,
  type SentRecord,
  type StatementWriter,
  sendWrite,
  versionUnchanged,
  WrittenView,
} from './single-statement.ts';
import {
  changedColumns,
  insertDecided,
  insertJudgement,
  insertStatement,
  STORED,
  updateJudgement,
  updateStatement,
  WRITTEN,
  type Writing,
} from './written-row.ts';

/** A write of columns of one record. */
export interface AskedWrite {
  readonly kind: 'create' | 'update';
  readonly id: string;
  readonly now: string;
  readonly tenant: string | undefined;
  readonly values: readonly ColumnValue[];
  readonly references: readonly ReferencedId[];
  /** The rules of the record, then of each member that has its own. */
  readonly permits: readonly Permit[];
  /** The records that fail the checks of the collection. */
  readonly violations: readonly Permit[];
  /** The count of changes that the stored record must have, where an update names versions. */
  readonly counts: readonly string[];
  /** The write has taken its turn. */
  readonly isInTurn: boolean;
}

/** The values of one request, for the forms. */
export interface WriteValues extends AnsweredPermits {
  readonly asked: AskedWrite;
}

/** Two statements, of which the first decides: it returns a cell, and those that follow the cells of `statement`. */
interface DecidedWrite {
  readonly decision: SqlForm<WriteValues>;
  readonly statement: SqlForm<WriteValues>;
}

export class WritePlan {
  readonly view: RecordView;
  /** The statement returns the record as it is after the write; otherwise `written` reads it. */
  readonly isExact: boolean;
  readonly statement: SqlForm<WriteValues>;
  /** The same on a cluster: a create has no other way (`createDecided`), and an update takes it at the worker of its tenant (`updateDecided`). */
  readonly decided: DecidedWrite | undefined;
  /** The rules of a create read the record and the request alone: `isPermitted` decides, before `statement` inserts. */
  readonly isDecidedHere: boolean;
  readonly written: SqlForm<WriteValues>;
  /** The characters of all of them. */
  readonly text: number;

  /** @param asked of the shape, of whose values none is used */
  constructor(store: Store, access: AccessContext, asked: AskedWrite) {
    const { kind } = asked;
    const id = placed((request) => request.id);
    const tenant = asked.tenant === undefined ? undefined : placed((request) => request.tenant);
    const references = asked.references.map((each, i) => ({ ...each, id: placed((to) => to.references[i]!.id) }));
    const values = asked.values.map((each, i) => ({ ...each, value: placed((request) => request.values[i]!.value) }));
    const permitsOf = (of: 'permits' | 'violations'): readonly Permit[] =>
      asked[of].map((each, i) => each.placed((filled: WriteValues) => filled.asked[of][i]!).within(tenant));
    const permits = permitsOf('permits');
    const violations = permitsOf('violations');
    const reading = { store, access: accessIn(access, tenant), tenant };
    const view = new WrittenView(reading);
    this.view = view.record;
    this.isExact = view.isExactFor(kind);
    const rulesConsultOthers = [...permits, ...violations].some((each) => each.consultsOthers);
    const writing = { values, members: [], partners: [] };
    const changed = changedColumns(access.collection, writing);
    const isUpdate = kind === 'update';
    const conditions = [
      ...permits.map((permit) => (isUpdate ? permit.update.allows(STORED, WRITTEN, changed) : permit.where(WRITTEN))),
      ...violations.map((each) => (isUpdate ? passesUpdate(each, changed) : passesCreate(each))),
      ...readableReferences(reading, references),
      ...(isUpdate && asked.isInTurn ? [hasTurn(placed(({ id: of }) => turnName(access.collection.name, of)))] : []),
      ...asked.counts.map((_, i) =>
        hasCount(
          access.collection,
          placed((request) => request.counts[i]),
        ),
      ),
    ];
    const parts = { reading, view, id, writing, condition: join(conditions, ' AND '), isExact: this.isExact };
    const forms = isUpdate
      ? updateForms(parts, (this.isExact && view.consultsOthers) || rulesConsultOthers)
      : createForms(parts, rulesConsultOthers || references.length > 0);
    this.statement = forms.statement;
    this.decided = forms.decided;
    this.isDecidedHere = forms.isDecidedHere === true;
    this.written = new SqlForm(view.statement(id));
    const all = [this.statement, this.written, this.decided?.decision, this.decided?.statement];
    this.text = all.reduce((sum, form) => sum + (form?.text.length ?? 0), 0);
  }
}

const placed = (read: (request: AskedWrite) => unknown): Place<WriteValues> =>
  new Place((values: WriteValues) => read(values.asked));

interface WriteParts {
  readonly reading: Requested;
  readonly view: WrittenView;
  readonly id: Place<WriteValues>;
  readonly writing: Writing;
  readonly condition: Sql;
  readonly isExact: boolean;
}

interface WriteForms {
  readonly statement: SqlForm<WriteValues>;
  readonly decided?: DecidedWrite | undefined;
  readonly isDecidedHere?: boolean;
}

/** @param consultsOthers the condition or the answer reads other rows */
function updateForms({ reading, view, condition, isExact, ...of }: WriteParts, consultsOthers: boolean): WriteForms {
  const { store, access, tenant } = reading;
  const update = { ...of, collection: access.collection.name, now: placed((request) => request.now) };
  const unchanged = consultsOthers ? [condition, versionUnchanged(reading, of.id)] : [condition];
  const returning = isExact ? view.columns : raw('1');
  const statement = new SqlForm(
    updateStatement(reading, { ...update, condition: join(unchanged, ' AND '), returning }),
  );
  // A value that a rule hides does not leave the database.
  const isDivided = store.isCluster && tenant !== undefined && view.record.masks(WRITTEN).length === 0;
  if (!isDivided || !consultsOthers || !isExact) return { statement };
  const count = sql`${versionColumn(access.collection, STORED)}::text`;
  const judging = sql`set_config(${JUDGED}, CASE WHEN ${condition} THEN ${count} ELSE '' END, true)`;
  const isJudged = sql`${count} = current_setting(${JUDGED}, true)`;
  const decision = new SqlForm<WriteValues>(
    updateJudgement(reading, { ...update, conditions: [judging, ...view.decisions(WRITTEN, 'update')] }),
  );
  const written = updateStatement(reading, { ...update, condition: isJudged, returning: view.storedColumns });
  return { statement, decided: { decision, statement: new SqlForm(written) } };
}

/** A setting of the transaction: the count of changes of the record that was decided on; empty if the write is not allowed. */
const JUDGED = raw("'bylaw.judged'");

/** @param consultsOthers the condition reads other rows */
function createForms({ reading, view, writing, condition, isExact }: WriteParts, consultsOthers: boolean): WriteForms {
  const returning = isExact ? view.columns : raw('1');
  if (!reading.store.isCluster)
    return { statement: new SqlForm(insertStatement(reading, { writing, condition, returning })) };
  const conditions = [condition, ...view.decisions(WRITTEN, 'create')];
  // Citus takes no subquery in an INSERT; the elements of a list are one.
  const isPlain = conditions.every(({ text }) => !text.includes('(SELECT '));
  const isDecidedHere = !consultsOthers && isPlain && !view.rulesConsultOthers;
  const own = isDecidedHere ? view.decisions(STORED, 'create').map((each) => sql`(${each})`) : [];
  const inserted = { writing, returning: join([view.storedColumns, ...own], ', ') };
  const statement = new SqlForm<WriteValues>(insertDecided(reading, inserted));
  if (isDecidedHere) return { statement, isDecidedHere };
  return {
    statement,
    decided: { decision: new SqlForm(insertJudgement(reading, { writing, conditions })), statement },
  };
}

const writePlansOf = memoizedBy((_: Store) => new ShapeMemory<WritePlan>(({ text }) => text));

export const writePlanOf = (store: Store, access: AccessContext, asked: AskedWrite): KnownPlan<WritePlan> =>
  writePlansOf(store).planOf(writeShape(access, asked), access, (placed) => new WritePlan(store, placed, asked));

/**
 * All that decides the plan, besides the answers of the caller's other rules. Its parts are names of
 * the schema and numbers of compiled rules, so two shapes never have one spelling.
 */
function writeShape({ collection }: AccessContext, asked: AskedWrite): string {
  const { kind, permits, violations, values, references, counts, isInTurn, tenant } = asked;
  return [
    kind,
    collection.name,
    permits.map(({ shape }) => shape).join(';'),
    violations.map(({ shape }) => shape).join(';'),
    values.map(({ column }) => column),
    references.map((reference) => reference.collection),
    counts.length,
    isInTurn,
    tenant !== undefined,
  ].join('|');
}

/** Sends the statement if the first cell of the decision is true. Undefined: it is not. */
export async function createDecided(
  writer: StatementWriter,
  { decision, statement }: DecidedWrite,
  known: WriteValues,
  sent: SentRecord,
): Promise<Cells | undefined> {
  const [[isAllowed, ...decisions] = []] = await writer.q.rows(decision.fill(known));
  if (isAllowed !== 't') return undefined;
  const [cells] = await sendWrite(writer, statement.fill(known), sent);
  return cells && [...cells, ...decisions];
}

/** Sends both as one transaction. Undefined: it is not allowed, or the record has changed since the decision. */
export async function updateDecided(
  writer: StatementWriter,
  { statement, decided }: Pick<WritePlan, 'statement' | 'decided'>,
  known: WriteValues,
  sent: SentRecord,
): Promise<Cells | undefined> {
  const { store, access, q } = writer;
  // Citus plans a statement that changes a record and reads others at each execution; a worker keeps the plans of these two.
  const isDivided = decided !== undefined && 'writeDecided' in q && !store.reachesHistory(access.collection.name);
  const both = isDivided
    ? await q.writeDecided?.(decided.decision.fill(known), decided.statement.fill(known))
    : undefined;
  if (both === undefined) return (await sendWrite(writer, statement.fill(known), sent))[0];
  const {
    decided: [[, ...decisions] = []],
    written: [cells],
  } = both;
  return cells && [...cells, ...decisions];
}
