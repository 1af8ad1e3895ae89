/** The outcome of a request as the rules alone predict it: unique values and references are the database's. */
import type { PolicyRequest, Row } from '../../policy/types.ts';
import { rulesOfAction } from '../../schema/model/kept/soft-delete.ts';
import type { DatabaseOutcome } from '../test/database-outcome.ts';
import type { Expectation } from '../test/expectation.ts';
import type { PredicateJudge } from '../test/predicate.ts';
import type { RowNames } from '../test/test-rows.ts';

const DONE = { list: 200, read: 200, create: 201, update: 200, delete: 204, restore: 200 } as const;
const REFUSED: DatabaseOutcome = { status: 403, detail: 'the rules refuse it' };
const NO_REFERENCE: DatabaseOutcome = { status: 422, detail: 'the data name a record that the caller may not read' };
const HIDDEN: DatabaseOutcome = { status: 404, detail: 'the rules hide the record' };

export class PredictedOutcomes {
  readonly #judge: PredicateJudge;
  readonly #names: RowNames;

  constructor(judge: PredicateJudge, names: RowNames) {
    this.#judge = judge;
    this.#names = names;
  }

  async of(expectation: Expectation, request: PolicyRequest): Promise<DatabaseOutcome> {
    return this.predicted(expectation, request);
  }

  predicted(expectation: Expectation, request: PolicyRequest): DatabaseOutcome {
    const { collection, action, record, field } = expectation;
    if (isWholeRefused(expectation, request)) return REFUSED;
    if (action === 'list' && record === undefined) return { status: 200, ids: this.#idsOf(expectation) };
    const { isAllowed, failed } = this.#judge.judge({ ...expectation, field: undefined });
    if (isAllowed === undefined) return { status: 422, detail: 'the data are not valid' };
    const denial = isAllowed ? undefined : this.#denialOf(expectation);
    if (denial === HIDDEN) return HIDDEN;
    if (this.#namesHiddenRecord(expectation)) return NO_REFERENCE;
    if (denial !== undefined) return denial;
    if (failed.length > 0) {
      const names = failed.map(({ name }) => name);
      return { status: 422, detail: `the record fails ${names.join(', ')}`, failed: names };
    }
    if (action === 'list') return { status: 200, ids: [this.#names.idOf(collection.name, record!)!] };
    return { status: DONE[action], ...(field !== undefined && { record: this.#shown(expectation, field) }) };
  }

  #idsOf(expectation: Expectation): readonly string[] {
    const { name } = expectation.collection;
    return this.#judge.listed(expectation, this.#names.of(name)).map((row) => this.#names.idOf(name, row)!);
  }

  #shown(expectation: Expectation, field: string): Row {
    return this.#judge.judge(expectation).isAllowed === true ? { [field]: null } : {};
  }

  /** A caller who may not read the record does not learn that it exists. */
  #denialOf(expectation: Expectation): DatabaseOutcome {
    const { action } = expectation;
    if (action === 'create') return REFUSED;
    if (action !== 'update' && action !== 'delete') return HIDDEN;
    return this.#mayRead(expectation) ? REFUSED : HIDDEN;
  }

  #mayRead(expectation: Expectation): boolean {
    const asRead = { ...expectation, action: 'read', data: undefined, field: undefined } as const;
    return this.#judge.judge(asRead).isAllowed === true;
  }

  /** A write may only refer to records that its caller may read. */
  #namesHiddenRecord(expectation: Expectation): boolean {
    const { collection, data = {} } = expectation;
    return Object.entries(data).some(([name, value]) => {
      const relation = collection.relations.get(name);
      if (relation === undefined) return false;
      const target = this.#judge.collection(relation.collection);
      const record = (id: string): string | undefined => this.#names.nameOf(target.name, id);
      return idsOfValue(value).some((id) => !this.#mayRead({ ...expectation, collection: target, record: record(id) }));
    });
  }
}

/** `id`, `[id, …]` and `{ add: [id, …] }`. */
const idsOfValue = (value: unknown): readonly string[] =>
  typeof value === 'string' || typeof value === 'number'
    ? [String(value)]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(idsOfValue)
      : [];

/** The request alone makes every rule false. */
const isWholeRefused = ({ collection, action }: Expectation, request: PolicyRequest): boolean =>
  rulesOfAction(collection, action).every((rule) => (rule.beforeBody ?? rule).specialise(request).verdict === 'deny');
