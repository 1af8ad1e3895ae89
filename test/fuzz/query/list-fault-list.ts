/** Faults of what filters say of the list rule, of its branches, and of the union of their first ids. */
import { type Fault, fault } from '../faults/fault.ts';

const FACTS = 'src/policy/column-facts.ts';
const RESIDUAL = 'src/policy/residual.ts';
const ACCESS = 'src/policy/access.ts';
const BRANCHES = 'src/policy/emit/branches.ts';
const WHERE = 'src/policy/emit/where.ts';
const VISIT = 'src/policy/visit.ts';
const PLANNER = 'src/records/page/page-planner.ts';
const FIRST_IDS = 'src/records/page/first-ids.ts';
const LIST = 'src/records/page/list.ts';
const PLAN = 'src/records/page/page-plan.ts';
const MEMORY = 'src/records/shape-memory.ts';
const KEYSET = 'src/records/page/keyset.ts';

export const LIST_FAULTS: readonly Fault[] = [
  fault(FACTS, 'a known value is one of other records too', /isColumnOfRecord\(column\) &&/, ''),
  fault(FACTS, 'what holds fails', /\? TRUE_LEAF : FALSE_LEAF/, '? FALSE_LEAF : TRUE_LEAF'),
  fault(FACTS, 'what is not known fails', /!isKnown \? UNDECIDED/, '!isKnown ? FALSE_LEAF'),
  fault(FACTS, 'one known side is enough', /names\.every\(\(name\)/, 'names.some((name)'),
  fault(FACTS, 'each known link is the first one', /links\.set\(name, slot\+\+\)/, 'links.set(name, slots)'),
  fault(FACTS, 'an absent link finds rows', /value: cond\.negated \}/, 'value: !cond.negated }'),
  fault(FACTS, 'a link of any row is known', / && isStoredColumn\(key\) \? key/, ' ? key'),
  fault(FACTS, 'an or that is decided is an and', /return or\(cond\.items\.map/, 'return and(cond.items.map'),
  fault(
    RESIDUAL,
    'all facts leave the same',
    /this\.#remainders\.get\(outcomes\)/,
    '[...this.#remainders.entries()][0]?.[1]',
  ),
  fault(FACTS, 'a filter for a value says null', /!cond\.negated && (isColumnOfRecord\(cond\.column\))/, '$1'),
  fault(FACTS, 'a filter says what it excludes', / \|\| !isMember\(OPERATORS\[cond\.op\]\)/, ''),
  fault(
    ACCESS,
    'a rule without branches hides its records',
    /if \(some === undefined\) return undefined;/,
    'if (some === undefined) continue;',
  ),
  fault(
    BRANCHES,
    'the rest of a branch is forgotten',
    /and\(parts\.filter\(\(part\) => part !== access\)\)/,
    'and([])',
  ),
  fault(BRANCHES, 'what stands beside an or is forgotten', /\[\.\.\.way, \.\.\.others\]/, 'way'),
  fault(
    BRANCHES,
    'branches without an index are left out',
    /if \(ways === undefined\) return undefined;/,
    'if (ways === undefined) continue;',
  ),
  fault(BRANCHES, 'one way of an or is enough', /all\.push\(\.\.\.ways\)/, 'all.splice(0, all.length, ...ways)'),
  fault(BRANCHES, 'a list is its first element', /SELECT unnest\(\$\{list\}\)/, 'SELECT (${list})[1]'),
  fault(
    FIRST_IDS,
    'branches do not obey the filters',
    /\[\.\.\.rest, \.\.\.conditions\]\.map\(tested\)/,
    'rest.map(tested)',
  ),
  fault(FIRST_IDS, 'branches begin again on every page', /\.\.\.of, \.\.\.after, /, '...of, '),
  fault(PLANNER, 'ranges end one record early', /(const length = RANGE_LENGTHS.*) \?\? most;/, '$1! - 1;'),
  fault(FIRST_IDS, 'a walk that ends early is enough', /(FROM \$\{ident\(name\)\}\)) < \$\{walk\.most\}/, '$1 < 1'),
  fault(FIRST_IDS, 'a walk does not obey the filters', /: \[\.\.\.conditions, \.\.\.permitted\]/, ': permitted'),
  fault(
    FIRST_IDS,
    'a walk whose rule is tested last does not obey the filters',
    /FROM \$\{passed\} WHERE \$\{join\(conditions, ' AND '\)\} ORDER/,
    'FROM ${passed} ORDER',
  ),
  fault(
    FIRST_IDS,
    'the rows of a walk need no permission',
    /const permitted = .*;/,
    "const permitted = [raw('TRUE')];",
  ),
  fault(FIRST_IDS, 'ranges begin at the first id in any order', /raw\(descending \? ' DESC' : ''\)/, "raw('')"),
  fault(
    FIRST_IDS,
    'the last branch is left out',
    /const parts = branches\.map/,
    'const parts = branches.slice(0, Math.max(1, branches.length - 1)).map',
  ),
  fault(FIRST_IDS, 'keys are of another row', / BETWEEN k\.key AND k\.key/, ' IS NOT NULL'),
  fault(WHERE, 'a range has no end', / BETWEEN \$\{value\} AND \$\{value\}/, ' >= ${value}'),
  fault(WHERE, 'a look-up finds any row', /(const match = .*?) : sql`\$\{link\} = \$\{key\}`;/, "$1 : raw('TRUE');"),
  fault(
    RESIDUAL,
    'a union drops the values that are absent',
    /NOTHING_BOUND\.concat\(\.\.\.all\.map\((.*?)\)\)/,
    'all.flatMap($1)',
  ),
  fault(VISIT, 'the rules of a union share their slots', /slot: side\.slot \+ by\.slots/, 'slot: side.slot'),
  fault(PLAN, 'ranges end with the first page', /const most = limit \+ 1 \+ offset/, 'const most = limit + 1'),
  fault(LIST, 'what a filter leaves open is empty', /permit\.verdict === 'deny'/, "permit.verdict === 'depends'"),
  fault(
    PLAN,
    'branches do not obey the filter of a query',
    /\[\.\.\.this\.#tests, \.\.\.sortedConditions\(this\.#related\)\]/,
    'sortedConditions(this.#related)',
  ),
  fault(PLAN, 'a range of the rule does not obey the filters', /(: \[branch!\.where\]\), )\.\.\.this\.#tests, /, '$1'),
  fault(
    PLAN,
    'a range of a filter begins again on every page',
    /\[\.\.\.after, \.\.\.this\.#tests, /,
    '[...this.#tests, ',
  ),
  fault(PLAN, 'gathered rows need no permission', /\[\.\.\.after, \.\.\.this\.#whole\]/, '[...after]'),
  fault(
    PLAN,
    'a walk beside related rows in memory needs no permission',
    /\.\.\.others, \.\.\.this\.#whole\]\.map/,
    '...others].map',
  ),
  fault(
    PLAN,
    'a walk beside related rows in memory does not obey the filters',
    /\[\.\.\.this\.#testsOfMany\(\), /,
    '[',
  ),
  fault(
    PLAN,
    'a walk begins again on every page',
    /from: this\.#rows\.where\(\.\.\.after, /,
    'from: this.#rows.where(',
  ),
  fault(PLAN, 'a walk in a range begins again on every page', /where\(range, \.\.\.after, /, 'where(range, '),
  fault(MEMORY, 'a plan serves callers whose rules differ', /answer\?\.shape !== shapes\[i\]/, 'false'),
  fault(PLAN, 'a plan serves what other filters leave of the rule', / {4}rule\.shape,/, ''),
  fault(PLAN, 'a plan serves other filters', / {4}filters\.map\(\(\{ shape \}\) => shape\),/, ''),
  fault(PLAN, 'a plan serves other orders', / {4}order,/, ''),
  fault(PLAN, 'a plan serves positions with a value where there is none', / {4}after,/, ''),
  fault(PLAN, 'a plan serves other pages', / {4}window,/, ''),
  fault(
    KEYSET,
    'any order is that of the ids',
    /this\.byId = keys\.length - from === 1 \?/,
    'this.byId = keys.length > 0 ?',
  ),
];
