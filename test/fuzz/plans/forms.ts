/** All forms of a list that we know: each fixes the choices of the planner of pages, and of lists of keys or look-ups. */
import type { Permit } from '../../../src/policy/access.ts';
import type { Branch, ColumnValues } from '../../../src/policy/branch.ts';
import type { AccessContext, Hooks } from '../../../src/records/access-context.ts';
import type { ChosenWay, PageQuestion } from '../../../src/records/page/page-question.ts';
import type { StatisticsOf, TableStatistics } from '../../../src/records/page/table-statistics.ts';

/** Thrown where a list does not have the form. */
export class NotOfThisForm extends Error {}

type ChoosesForm = (question: PageQuestion) => ChosenWay;

export interface Form {
  readonly name: string;
  /** The lists of keys: none, all that may have some thousand keys, or as the rules alone state them. */
  readonly keys: 'look-ups' | 'lists' | 'as stated';
  readonly choose: ChoosesForm;
  /** The whole condition in one piece, for PostgreSQL to plan. */
  readonly isPlain?: boolean;
}

const none = (): never => {
  throw new NotOfThisForm();
};

const walk: ChoosesForm = () => undefined;

/** Each branch is found by its alternative of this number, or by its last one. */
const branchesBy =
  (place: number, rows?: number): ChoosesForm =>
  ({ branches, lookUps }) => {
    if (branches === undefined || (rows !== undefined && lookUps.length === 0)) return none();
    const ways = branches.map((branch) => [branch, ...branch.alternatives]);
    if (place > 0 && ways.every((each) => each.length <= place)) return none();
    return { kind: 'branches', branches: ways.map((each) => each[Math.min(place, each.length - 1)]!), walk: rows };
  };

const isRange = ({ column, values, isInside }: ColumnValues, indexed: ReadonlySet<string>): boolean =>
  values.length === 1 && isInside !== true && column !== 'id' && indexed.has(column);

const rangeOfFilter =
  (place: number): ChoosesForm =>
  ({ isById, filters, indexed, links }) => {
    const of = filters.filter((test) => isRange(test, indexed))[place];
    return of === undefined || !isById || links !== undefined ? none() : { kind: 'range', of };
  };

const rangeOfRule =
  (place: number): ChoosesForm =>
  ({ branches = [] }) => {
    const [only] = branches;
    const of: Branch | undefined = only === undefined ? undefined : [only, ...only.alternatives][place];
    return branches.length !== 1 || of?.isOneRange !== true ? none() : { kind: 'range', of };
  };

const gathered: ChoosesForm = () => ({ kind: 'gathered', by: 'filters' });
const gatheredByKeys: ChoosesForm = ({ opaque }) =>
  opaque?.kind === 'related' ? { kind: 'gathered', by: 'keys', keys: 1_000_000 } : none();
const allGathered =
  (walk?: number): ChoosesForm =>
  ({ links, isById, order }) =>
    links !== undefined || (walk !== undefined && !isById && order === undefined)
      ? none()
      : { kind: 'gathered', by: 'all', walk };

export const FORMS: readonly Form[] = [
  { name: 'walk', keys: 'look-ups', choose: walk, isPlain: true },
  { name: 'walk, lists of keys', keys: 'lists', choose: walk },
  { name: 'the condition as stated', keys: 'as stated', choose: walk, isPlain: true },
  ...[0, 1, 2].map((place): Form => ({ name: `branches ${place}`, keys: 'look-ups', choose: branchesBy(place) })),
  { name: 'branches 0, lists of keys', keys: 'lists', choose: branchesBy(0) },
  { name: 'branches 0 after a walk', keys: 'look-ups', choose: branchesBy(0, 1_000) },
  ...[0, 1].map((place): Form => ({ name: `filter range ${place}`, keys: 'look-ups', choose: rangeOfFilter(place) })),
  { name: 'filter range 0, lists of keys', keys: 'lists', choose: rangeOfFilter(0) },
  ...[0, 1, 2].map((place): Form => ({ name: `rule range ${place}`, keys: 'look-ups', choose: rangeOfRule(place) })),
  { name: 'filter first', keys: 'look-ups', choose: gathered },
  { name: 'filter first, lists of keys', keys: 'lists', choose: gathered },
  { name: 'filter first by keys', keys: 'look-ups', choose: gatheredByKeys },
  { name: 'all that match', keys: 'look-ups', choose: allGathered() },
  { name: 'all that match after a walk', keys: 'look-ups', choose: allGathered(100) },
];

/** Settings under which PostgreSQL plans the condition as it is stated in another way. */
export const OTHER_SETTINGS: readonly (readonly string[])[] = [
  ['enable_indexscan = off', 'enable_indexonlyscan = off'],
  ['enable_sort = off', 'enable_bitmapscan = off'],
];

// ---------------------------------------------------------------- the planner's inputs of a form

const LARGE_TABLE: TableStatistics = { rows: 1_000_000_000, columns: new Map() };
/** The rows of the other tables count so much less that longer lists of keys count as short. */
const KEYS_FACTOR = 10;

/** Statistics by which the planner of pages has the lists of keys of a form. */
function statisticsFor({ keys, choose }: Form, real: StatisticsOf): StatisticsOf {
  // A filter that finds related rows first is one of a large table.
  if (choose === gatheredByKeys) return () => LARGE_TABLE;
  if (keys !== 'lists') return () => undefined;
  return (table) => {
    const known = real(table);
    return known && { ...known, rows: known.rows / KEYS_FACTOR };
  };
}

export const hooksOf = (form: Form, real: StatisticsOf): Hooks => ({
  choosesWay: form.choose,
  statisticsOf: statisticsFor(form, real),
});

/** The same access, whose rules are printed as they are stated: PostgreSQL finds related rows as it likes. */
export function asStated(access: AccessContext): AccessContext {
  return {
    ...access,
    permit: (...of) => stated(access.permit(...of)),
    member: (...of) => {
      const permit = access.member(...of);
      return permit && stated(permit);
    },
  };
}

/** The same access, whose rules look up the related rows of each record. */
export function asLookedUp(access: AccessContext): AccessContext {
  return {
    ...access,
    permit: (...of) => stated(access.permit(...of).lookingUp()),
    member: (...of) => {
      const permit = access.member(...of);
      return permit && stated(permit.lookingUp());
    },
  };
}

function stated(permit: Permit): Permit {
  const made: Permit = Object.create(permit, {
    lookingUp: { value: () => made },
    given: { value: (facts: Parameters<Permit['given']>[0]) => stated(permit.given(facts)) },
    placed: { value: (of: Parameters<Permit['placed']>[0]) => stated(permit.placed(of)) },
  });
  return made;
}
