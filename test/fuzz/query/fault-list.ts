/** Faults of what a filter sees, of orders, pages, cursors, counts and aggregates. */
import { type Fault, fault } from '../faults/fault.ts';

const SIGHT = 'src/policy/lower/masking.ts';
const KEYSET = 'src/records/page/keyset.ts';
const PATH_COLUMN = 'src/records/page/path-column.ts';
const FIRST_IDS = 'src/records/page/first-ids.ts';
const CURSOR = 'src/records/page/cursor.ts';
const COUNT = 'src/records/page/count.ts';
const LIST = 'src/records/page/list.ts';
const PLAN = 'src/records/page/page-plan.ts';
const VISIBILITY = 'src/policy/visibility.ts';
const EXPAND = 'src/records/expand.ts';
const CAPABILITIES = 'src/records/capabilities.ts';
const PLANS = 'src/policy/filters/filter-plans.ts';
const AGGREGATE = 'src/records/page/aggregate.ts';

export const QUERY_FAULTS: readonly Fault[] = [
  fault(
    SIGHT,
    'a filter walks to hidden records',
    /if \(this\.#visibility === undefined\) return exists;/,
    'if (true) return exists;',
  ),
  fault(
    SIGHT,
    'a filter sees what a mask hides',
    /if \(rule === undefined \|\| rule\.verdict === 'allow'\) return column;/,
    'if (true) return column;',
  ),
  fault(
    SIGHT,
    'a mask that depends on the record hides it everywhere',
    /if \(rule\.verdict === 'deny'\) return undefined;/,
    'return undefined;',
  ),
  fault(
    SIGHT,
    'records that no rule shows are walked to',
    /held === undefined \|\| records\.verdict === 'deny' \|\|/,
    'held === undefined ||',
  ),
  fault(SIGHT, 'records that some rule hides are walked to', /: records\.verdict === 'depends'/, ': false'),
  fault(SIGHT, 'a hidden reference leads back', /via\?\.verdict === 'depends'/, 'false'),
  fault(SIGHT, 'a chain goes on above a hidden record', /const isSeen = !this\.mayHide\(.*\);/, 'const isSeen = true;'),
  fault(
    KEYSET,
    'nulls come first where the order descends',
    /nullable \? ' DESC NULLS LAST' : ' DESC'/,
    "nullable ? ' DESC' : ' DESC'",
  ),
  fault(KEYSET, 'what has no value is lost after a page', /if \(nullable\) ways\.push/, 'if (false) ways.push'),
  fault(KEYSET, 'ties are lost after a page', /if \(!isLast\) ways\.push/, 'if (false) ways.push'),
  fault(KEYSET, 'the first key skips its ties', /descending \? '<=' : '>='/, "descending ? '<' : '>'"),
  fault(
    KEYSET,
    'a page begins with the last record of the one before',
    /const beyond = raw\(keys\[0\]!\.descending \? '<' : '>'\);/,
    "const beyond = raw(keys[0]!.descending ? '<=' : '>=');",
  ),
  fault(KEYSET, 'a descending page goes on upwards', /\$\{raw\(descending \? '<' : '>'\)\}/, "${raw('>')}"),
  fault(
    KEYSET,
    'directions that differ are one range',
    /!nullable && descending === keys\[0\]!\.descending/,
    '!nullable',
  ),
  fault(
    PATH_COLUMN,
    'hidden records are sorted by',
    /records\.verdict === 'allow' \? \[link\] : \[link, records\.where\(target\.alias\)\]/,
    '[link]',
  ),
  fault(
    KEYSET,
    'a masked field is taken for one that every record has',
    /!own \|\| !field\.required \|\| mask !== undefined/,
    '!own || !field.required',
  ),
  fault(
    PATH_COLUMN,
    'a hidden reference is followed',
    /=> maskedBy\(rule, referring, column\)/,
    '=> (isOwn ? column : maskedBy(rule, referring, column))',
  ),
  fault(
    PATH_COLUMN,
    'a hidden reference leads to the holder',
    /=> maskedBy\(rule, referring, column\)/,
    '=> (isOwn ? maskedBy(rule, referring, column) : column)',
  ),
  fault(
    KEYSET,
    'the ids of related records are in the order of their texts',
    /if \(path\.field !== undefined\) return/,
    'if (path !== undefined) return',
  ),
  fault(KEYSET, 'ties descend with the order', /at >= 0 && sorts\[at\]!\.descending/, 'sorts[0]?.descending === true'),
  fault(CURSOR, 'a cursor fits every query', /JSON\.stringify\(\[collection, caller, query\]\)/, "''"),
  fault(CURSOR, 'a cursor is believed', /!isWhole \|\| !timingSafeEqual\(.*\)\)/, '!isWhole)'),
  fault(COUNT, 'an exact figure is called an estimate', /totalIsEstimate: false/, 'totalIsEstimate: true'),
  fault(
    COUNT,
    'a count stops before the end',
    /SELECT count\(\*\) \$\{source\}/,
    'SELECT least(count(*), 3) ${source}',
  ),
  fault(
    FIRST_IDS,
    'a query finds what the list rule hides',
    /permit\.verdict === 'allow' \? \[\] : \[permit\.where\('t'\)\]/,
    '[]',
  ),
  fault(
    LIST,
    'a full page promises a next one',
    /const hasMore = rows\.length > limit;/,
    'const hasMore = rows.length >= limit;',
  ),
  fault(
    PLAN,
    'records without a value follow only an empty page',
    /< \$\{mostOf\(upTo\.rows, upTo\.place\)\}`/,
    '< ${mostOf(1)}`',
  ),
  fault(AGGREGATE, 'records that the list rule hides are counted', /, \.\.\.conditionOf\(permit\)/, ''),
  fault(AGGREGATE, 'nulls come first where the order descends', /' DESC NULLS LAST'/, "' DESC'"),
  fault(AGGREGATE, 'floats are added one after the other', /\$\{column\}::text::numeric/, '${column}'),
  fault(AGGREGATE, 'a sum that no double holds is shown', /Number\.isSafeInteger\(value\) \? cell : undefined/, 'cell'),
  fault(
    AGGREGATE,
    'an average counts records without a value',
    /nullif\(count\(\$\{column\}\)\$\{over\}, 0\)/,
    'count(*)${over}',
  ),
  fault(AGGREGATE, 'values count as often as they come', /count\(DISTINCT /, 'count('),
  fault(AGGREGATE, 'the year of a week is that of its day', /IYYY-/, 'YYYY-'),
  fault(
    AGGREGATE,
    'groups break no ties',
    /const order = \[\.\.\.sort, \.\.\.ties/,
    'const order = [...sort, ...ties.slice(ties.length)',
  ),
  fault(AGGREGATE, 'there is always more', /rows\.length > request\.limit/, 'rows.length >= request.limit'),
  fault(
    VISIBILITY,
    'what a mask hides is sorted by, and measured',
    /if \(rule === undefined \|\| rule\.verdict === 'allow'\) return column;/,
    'if (true) return column;',
  ),
  fault(
    EXPAND,
    'a record that several share holds everything several times',
    /\[\.\.\.new Set\(records\.map\(\(record\) => record\[0\]\)\)\]/,
    'records.map((record) => record[0])',
  ),
  fault(
    EXPAND,
    'a hidden record is shown where one leads to it',
    /isHeld, readable\(access, collection, 'x', store\.pages\.isFew\)\)/,
    'isHeld)',
  ),
  fault(
    EXPAND,
    'hidden records are shown among the related ones',
    /\[isRelated, relation\.kind === 'many_to_many' \? tested\(rule\) : rule\]/,
    '[isRelated]',
  ),
  fault(EXPAND, 'a hidden reference shows what it leads to', /if \(link\?\.verdict === 'depends'\)/, 'if (false)'),
  fault(EXPAND, 'a list that is cut does not say so', /isCut: all\.length > limit/, 'isCut: false'),
  fault(
    CAPABILITIES,
    'what some write may do is said to be certain',
    /return cells\[from \+ 1\] === 't' \? 'depends' : false;/,
    "return cells[from + 1] === 't';",
  ),
  fault(CAPABILITIES, 'everyone may delete', /delete: cells\[from \+ 2\] === 't'/, 'delete: true'),
  fault(
    CAPABILITIES,
    'hidden records say what may be done with them',
    /, readable\(access, collection\.name, 't'\)\)/,
    ')',
  ),
  fault(COUNT, 'the planner counts what is hidden', /if \(!isOpen\) return/, 'if (false) return'),
  fault(PLANS, 'what a filter came to for another caller is taken', / && each\.isFor\(visibility\)/, ''),
];
