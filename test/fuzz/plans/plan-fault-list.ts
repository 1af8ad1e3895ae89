/** Faults that change no byte of a page, but how much a page reads. */
import { type Fault, fault } from '../faults/fault.ts';

const PLANNER = 'src/records/page/page-planner.ts';
const COSTS = 'src/records/page/page-costs.ts';
const FIRST_IDS = 'src/records/page/first-ids.ts';
const WHERE = 'src/policy/emit/where.ts';
const CONTEXT = 'src/records/access-context.ts';

/** Faults of what an expansion reads. */
export const EXPAND_FAULTS: readonly Fault[] = [
  fault(
    CONTEXT,
    'related records have lists of keys',
    /'read'\)\.lookingUp\(isFew\)\.where\(alias\)/,
    "'read').where(alias)",
  ),
];

export const PLAN_FAULTS: readonly Fault[] = [
  fault(
    PLANNER,
    'every page is a walk',
    /\(\(question\) => shortestWay\(question, statisticsOf\)\)/,
    '(() => undefined)',
  ),
  fault(PLANNER, 'lists of keys have no bound', /FEW_KEYS = 500/, 'FEW_KEYS = 500_000_000'),
  fault(
    COSTS,
    'the rows of any filter are found first',
    /return first\.way;\n {4}const \{ cost, way \} = other;/,
    "return first.way;\n    if (this.#question.opaque !== undefined) return { kind: 'gathered', by: 'filters' };\n    const { cost, way } = other;",
  ),
  fault(COSTS, 'a walk before branches has no end', /LENGTHS = \[.*\];/, 'LENGTHS = [10_000_000];'),
  fault(FIRST_IDS, 'a range has the order of another index', /isId \? empty : sql`t/, 'true ? empty : sql`t'),
  fault(
    PLANNER,
    'no statement is planned for its values',
    /return \{ way, isPlannedFor \};/,
    'return { way, isPlannedFor: false };',
  ),
  fault(WHERE, 'a look-up may be hashed', /FENCE = raw\(' OFFSET 0'\)/, "FENCE = raw('')"),
  ...EXPAND_FAULTS,
];
