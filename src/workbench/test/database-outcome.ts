/** Outcomes of requests in a database: the records room carries each out behind the gate of HTTP, and a write is undone. */
import { present } from '../../invariant.ts';
import type { Action, PolicyRequest, Row } from '../../policy/types.ts';
import { type ErrorDetail, PROBLEMS, Problem, type ProblemCode } from '../../problem.ts';
import type { AccessContext, Store } from '../../records/access-context.ts';
import type { FindDeleted } from '../../records/deleted-records.ts';
import { recordKeyOf } from '../../records/record-key.ts';
import type { Records } from '../../records/records.ts';
import { tenantOf } from '../../records/scope.ts';
import { findSystem } from '../../records/system.ts';
import type { Data } from '../../records/write/input.ts';
import { askedCreate } from '../../records/write/row-in-process.ts';
import { Refusal } from '../../refusal.ts';
import { type Collection, nameOfTransitions, type Schema } from '../../schema/model/model.ts';
import type { Expectation } from './expectation.ts';
import type { RowNames } from './test-rows.ts';

interface AskedAction {
  readonly caller: Row;
  readonly collection: Collection;
  readonly action: Action;
}
/** The gate of HTTP. Throws `forbidden`. */
type AdmitTest = (
  asked: AskedAction,
  request: PolicyRequest,
  schema?: Schema,
) => { access(data?: Data): AccessContext };

export interface TestTools {
  readonly store: Store;
  readonly records: Records;
  readonly admit: AdmitTest;
  readonly deleted: FindDeleted;
}

export interface DatabaseOutcome {
  readonly status: number;
  readonly code?: ProblemCode;
  readonly detail?: string;
  /** The names of the checks that the record failed. */
  readonly failed?: readonly string[];
  /** The ids of a list. */
  readonly ids?: readonly string[];
  /** The record that a read shows. */
  readonly record?: Row;
}

interface OutcomePlace extends TestTools {
  readonly names: RowNames;
}

/** The name of the check of an error. */
function checkOf({ code, check, pointer }: ErrorDetail): string | undefined {
  return code === 'transition_refused' ? nameOfTransitions(pointer!.replace('/data/', '')) : check;
}

/** Records of a page. */
const ROWS_OF_A_PAGE = 100;

export class DatabaseOutcomes {
  readonly #place: OutcomePlace;
  /** Several expectations are about one list, or one read. */
  readonly #known = new Map<string, Promise<DatabaseOutcome>>();

  constructor(place: OutcomePlace) {
    this.#place = place;
  }

  of(expectation: Expectation, request: PolicyRequest): Promise<DatabaseOutcome> {
    const { collection, action, as, query, facts, session, record } = expectation;
    const isRead = action === 'list' || action === 'read';
    if (!isRead) return this.#outcome(expectation, request);
    const key = JSON.stringify([collection.name, action, as, query, facts, session, action === 'read' && record]);
    const known = this.#known.get(key) ?? this.#outcome(expectation, request);
    this.#known.set(key, known);
    return known;
  }

  async #outcome(expectation: Expectation, request: PolicyRequest): Promise<DatabaseOutcome> {
    try {
      return await this.#carriedOut(expectation, request);
    } catch (error) {
      if (!(error instanceof Problem) && !(error instanceof Refusal)) throw error;
      const [first] = error.errors;
      const detail = first === undefined ? error.message : `${first.pointer ?? ''}: ${first.detail}`;
      const failed = [...new Set(error.errors.flatMap((each) => checkOf(each) ?? []))];
      return { status: PROBLEMS[error.code].status, code: error.code, detail, failed };
    }
  }

  async #carriedOut(expectation: Expectation, request: PolicyRequest): Promise<DatabaseOutcome> {
    const { collection, action, record, data = {} } = expectation;
    const { records, admit, names } = this.#place;
    if (action === 'restore') return this.#restored(expectation, request);
    const access = admit({ caller: request.auth!, collection, action }, request).access(data);
    const id = record === undefined ? '' : names.idOf(collection.name, record)!;
    switch (action) {
      case 'list':
        return { status: 200, ids: await this.#ids(access) };
      case 'read': {
        const { json } = await records.read(access, { id, relations: [] });
        return { status: 200, record: JSON.parse(String(json)) as Row };
      }
      case 'create':
        await records.dryRun((batch) => batch.create(access, { ...askedCreate(collection, data), relations: [] }));
        return { status: 201 };
      case 'update':
        await records.dryRun((batch) => batch.update(access, { id, data, errors: [], relations: [] }));
        return { status: 200 };
      case 'delete':
        await records.dryRun((batch) => batch.remove(access, { id }));
        return { status: 204 };
    }
  }

  /** Through the gate of `POST …/restore`, of a record that is deleted in the same transaction. */
  async #restored({ collection, record, deletedAt }: Expectation, request: PolicyRequest): Promise<DatabaseOutcome> {
    const { records, admit, names, deleted, store } = this.#place;
    const { name } = collection;
    const gone = present(deleted(name), 'the deleted records of the collection');
    const asked = { caller: request.auth!, collection: gone.collection, action: 'list' as const };
    const access = admit(asked, request, gone.schema).access();
    const id = names.idOf(name, record!)!;
    const [row] = await findSystem(store, store.db, { collection: name, where: recordKeyOf(collection).is('t', id) });
    const tenant = tenantOf(collection, row!);
    const place = { id, tenant, deletedAt: deletedAt ?? request.now };
    await records.dryRun(({ tx }) => gone.restoreAsDeletedAt(tx, access, place));
    return { status: 200 };
  }

  async #ids(access: AccessContext): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let offset = 0; ; offset += ROWS_OF_A_PAGE) {
      const { json, hasMore } = await this.#place.records.list(access, { limit: ROWS_OF_A_PAGE, offset });
      ids.push(...(JSON.parse(String(json)) as readonly { readonly id: unknown }[]).map(({ id }) => String(id)));
      if (!hasMore) return ids;
    }
  }
}
