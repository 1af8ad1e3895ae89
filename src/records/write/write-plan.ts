/**
 * The plan of a create or an update: the statement that decides and writes, made of the caller's rules
 * and the names of the members that are set. A plan serves all writes of a shape, so its statements
 * are forms.
 */
import { memoizedBy } from '../../memoized.ts';
import type { Permit } from '../../policy/access.ts';
import { join, Place, raw, SqlForm, sql } from '../../sql.ts';
import { type AccessContext, accessIn, type Store } from '../access-context.ts';
import { readableReferences } from '../constraint-errors.ts';
import type { RecordView } from '../record-view.ts';
import { type AnsweredPermits, type KnownPlan, ShapeMemory } from '../shape-memory.ts';
import { passesCreate, passesUpdate } from './checks.ts';
import type { ColumnValue, ReferencedId } from './input.ts';
import { hasTurn, turnName } from './locks/value-locks.ts';
import { hasCount, versionUnchanged, WrittenView } from './single-statement.ts';
import {
  changedColumns,
  insertDecided,
  insertJudgement,
  insertStatement,
  STORED,
  updateStatement,
  WRITTEN,
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

export class WritePlan {
  readonly view: RecordView;
  /** The statement returns the record as it is after the write; otherwise `written` reads it. */
  readonly isExact: boolean;
  readonly statement: SqlForm<WriteValues>;
  /**
   * Decides on a create before `statement` writes it, on a cluster: its first cell, and behind it those that follow the
   * cells of the statement.
   */
  readonly decision: SqlForm<WriteValues> | undefined;
  /** The rules of a create read the record and the request alone: `isPermitted` decides, before `statement` inserts. */
  readonly isDecidedHere: boolean;
  readonly written: SqlForm<WriteValues>;
  /** The characters of both. */
  readonly text: number;

  /** @param asked of the shape, of whose values none is used */
  constructor(store: Store, access: AccessContext, asked: AskedWrite) {
    const collection = access.collection.name;
    const place = (read: (request: AskedWrite) => unknown) => new Place((values: WriteValues) => read(values.asked));
    const id = place((request) => request.id);
    const tenant = asked.tenant === undefined ? undefined : place((request) => request.tenant);
    const references = asked.references.map((each, i) => ({ ...each, id: place((to) => to.references[i]!.id) }));
    const values = asked.values.map((each, i) => ({ ...each, value: place((request) => request.values[i]!.value) }));
    const placed = (of: 'permits' | 'violations'): readonly Permit[] =>
      asked[of].map((each, i) => each.placed((filled: WriteValues) => filled.asked[of][i]!).within(tenant));
    const permits = placed('permits');
    const violations = placed('violations');
    const reading = { store, access: accessIn(access, tenant), tenant };
    const view = new WrittenView(reading);
    this.view = view.record;
    this.isExact = view.isExactFor(asked.kind);
    const isUpdate = asked.kind === 'update';
    const consultsOthers =
      (this.isExact && view.consultsOthers) || [...permits, ...violations].some((each) => each.consultsOthers);
    const writing = { values, members: [], partners: [] };
    const changed = changedColumns(access.collection, writing);
    const conditions = [
      ...permits.map((permit) => (isUpdate ? permit.update.allows(STORED, WRITTEN, changed) : permit.where(WRITTEN))),
      ...violations.map((each) => (isUpdate ? passesUpdate(each, changed) : passesCreate(each))),
      ...readableReferences(reading, references),
      ...(isUpdate && consultsOthers ? [versionUnchanged(reading, id)] : []),
      ...(isUpdate && asked.isInTurn ? [hasTurn(place((request) => turnName(collection, request.id)))] : []),
      ...asked.counts.map((_, i) =>
        hasCount(
          access.collection,
          place((request) => request.counts[i]),
        ),
      ),
    ];
    const decided = {
      writing,
      condition: join(conditions, ' AND '),
      returning: this.isExact ? view.columns : raw('1'),
    };
    const now = place((request) => request.now);
    const isDivided = !isUpdate && store.isCluster;
    const readsOwn = references.length === 0 && ![...permits, ...violations].some((each) => each.consultsOthers);
    const asks = [decided.condition, ...view.newDecisions(WRITTEN)];
    // Citus takes no subquery in an INSERT; the elements of a list are one.
    const isPlain = asks.every(({ text }) => !text.includes('(SELECT '));
    this.isDecidedHere = isDivided && readsOwn && isPlain && !view.rulesConsultOthers;
    this.decision =
      isDivided && !this.isDecidedHere
        ? new SqlForm(insertJudgement(reading, { writing: decided.writing, conditions: asks }))
        : undefined;
    const own = this.isDecidedHere ? view.newDecisions(STORED).map((condition) => sql`(${condition})`) : [];
    const inserted = isDivided
      ? insertDecided(reading, { ...decided, returning: join([view.newColumns, ...own], ', ') })
      : insertStatement(reading, decided);
    this.statement = new SqlForm(isUpdate ? updateStatement(reading, { collection, id, now, ...decided }) : inserted);
    this.written = new SqlForm(view.statement(id));
    this.text = this.statement.text.length + this.written.text.length;
  }
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
