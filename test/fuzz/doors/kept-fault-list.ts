/** Faults of upserts, restores, histories and keys. */
import { type Fault, fault } from '../faults/fault.ts';

const UPSERT = 'src/records/write/upsert.ts';
const DELETED = 'src/records/deleted-records.ts';
const KEPT_RULES = 'src/schema/model/kept/kept-rules.ts';
const HISTORY = 'src/records/history.ts';
const HISTORY_TRIGGERS = 'src/migrations/changes/history-triggers.ts';
const DELETED_TRIGGERS = 'src/migrations/changes/deleted-row-triggers.ts';
const UNIQUE = 'src/migrations/keys/unique-indexes.ts';
const NO_OVERLAP = 'src/migrations/keys/no-overlap.ts';

export const KEPT_FAULTS: readonly Fault[] = [
  fault(
    UPSERT,
    'an upsert creates by the rule for update',
    /create\(store, access\.create\(data\), /,
    "create(store, ((own) => ({ ...own, permit: (of, action) => own.permit(of, action === 'create' ? 'update' : action) }))(access.create(data)), ",
  ),
  fault(UPSERT, 'an upsert finds a hidden record', /\n {4}readable\(reading\.access, collection\.name, 't'\),/, ''),
  fault(UPSERT, 'an upsert finds a record by a hidden value', /\n {4}\.\.\.names\.flatMap\(.*\),/, ''),
  fault(UPSERT, 'an upsert asks the rules of the value that it keeps', /=> !held\.has\(name\)/, '=> true'),
  fault(UPSERT, 'an upsert finds a value of its own case alone', /field\.uniqueKey\?\.ignoresCase === true/, 'false'),
  fault(
    UPSERT,
    'an upsert finds the value outside of its members',
    /(keyConditions\([\s\S]*?)for \(const name of \[field\.name, \.\.\.withinOf\(field\)\]\) \{/,
    '$1for (const name of [field.name]) {',
  ),
  fault(DELETED, 'a restore is judged by no rule', /permit\(name, 'list'\)\.where\('t'\)/, "$& && raw('TRUE')"),
  fault(DELETED, 'a restore is held to no check', /if \(failure !== undefined\) throw failure;/, ''),
  fault(DELETED, 'a restore brings no links back', /await tx\.run\(links\);/, ';'),
  fault(DELETED, 'a restored record has the time of its last change', /return isTime \?/, 'return false ?'),
  fault(DELETED, 'a restore leaves the owners as they are', /await tx\.run\(owners\);/, ';'),
  fault(
    KEPT_RULES,
    'a rule for kept rows relies on foreign keys',
    /catalog, kept, action/,
    'catalog, kept: kept && undefined, action',
  ),
  fault(
    DELETED,
    'a restored record stays among the deleted ones',
    /await tx\.run\(sql`DELETE FROM \$\{deleted\.stored\(.*\n/,
    '\n',
  ),
  fault(
    DELETED_TRIGGERS,
    'a deleted record is kept without its links',
    /SELECT coalesce\(jsonb_agg\(.*\), '\[\]'\)/,
    "SELECT coalesce(min('[]'), '[]')::jsonb",
  ),
  fault(HISTORY, 'a history has members that are hidden now', / && !hidden\.has\(name\)/, ''),
  fault(
    HISTORY,
    'a history has members that were hidden then',
    /new Set\(stored\)\.difference\(sight\.hiddenOf\(state\)\)/,
    'new Set(stored)',
  ),
  fault(HISTORY, 'a history has states that are hidden', /sight\.shows\(state\) \? /, 'true ? '),
  fault(HISTORY, 'a former state has no time', /if \(at === undefined\) return/, "if (at !== '') return"),
  fault(
    HISTORY,
    'a history is of a hidden record',
    /\.where\(isRecord, readable\(reading\.access, name, 't'\)\)/,
    '.where(isRecord)',
  ),
  fault(
    HISTORY,
    'a history tells that a hidden value is equal',
    /\(isOneHidden\(name\) \|\| differs\(name\)\)/,
    'differs(name)',
  ),
  fault(HISTORY_TRIGGERS, 'a history lacks updates', /AFTER INSERT OR UPDATE OR DELETE/, 'AFTER INSERT OR DELETE'),
  fault('src/records/access-context.ts', 'a change has no caller', /text\(principal\)\}, true/, "text('')}, true"),
  fault(
    UNIQUE,
    'a value is unique without its condition',
    /const where = index\.where === undefined \? empty : .*;/,
    'const where = empty;',
  ),
  fault(UNIQUE, 'a unique value has a case', /ignoresCase && i === columns\.length - 1/, 'false'),
  fault(
    NO_OVERLAP,
    'a period is kept apart without its condition',
    /\.\.\.\(where === undefined \? \[\] : \[where\]\),/,
    '',
  ),
  fault(
    NO_OVERLAP,
    'a period includes its end',
    /\$\{raw\(range\)\}\(\$\{first\}, \$\{last\}\)/,
    "${raw(range)}(${first}, ${last}, '[]')",
  ),
  fault(
    NO_OVERLAP,
    'one place of several is enough',
    /(places: )on(\.map\(\(name\) =>\n\s+placeExpression)/,
    '$1on.slice(0, 1)$2',
  ),
];
