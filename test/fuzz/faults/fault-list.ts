/** Faults of the later stages, from the checked tree to JavaScript and SQL, and of the store; after them those of the front end. */
import { FEED_FAULTS } from '../changes/feed-fault-list.ts';
import { KEPT_FAULTS } from '../doors/kept-fault-list.ts';
import { REFERRING_FAULTS } from '../doors/referring-fault-list.ts';
import { PLAN_FAULTS } from '../plans/plan-fault-list.ts';
import { QUERY_FAULTS } from '../query/fault-list.ts';
import { LIST_FAULTS } from '../query/list-fault-list.ts';
import { type Fault, fault } from './fault.ts';
import { FRONT_END_FAULTS } from './front-end-faults.ts';

const LOWER = 'src/policy/lower/lower.ts';
const COLUMNS = 'src/policy/lower/columns.ts';
const CONDITION = 'src/policy/condition.ts';
const COMPILE = 'src/policy/compile.ts';
const WRITTEN_ROW = 'src/records/write/written-row.ts';
const LINKS = 'src/records/relations/links.ts';
const HAS_ONE = 'src/records/relations/has-one.ts';
const RECORD_VIEW = 'src/records/record-view.ts';
const INPUT = 'src/records/write/input.ts';
const SINGLE_STATEMENT = 'src/records/write/single-statement.ts';
const LOCKED_ROW = 'src/records/write/locked-row.ts';
const CREATE = 'src/records/write/create.ts';
const UPDATE = 'src/records/write/update.ts';
const CHECKS = 'src/records/write/checks.ts';
const MATCHING = 'src/records/write/matching.ts';
const DENIAL_MESSAGE = 'src/http/denial-message.ts';
const WRITE_PLAN = 'src/records/write/write-plan.ts';
const REMOVE = 'src/records/write/remove.ts';
const CASCADES = 'src/records/relations/cascades.ts';
const GATHERED = 'src/database/lanes/write-batcher.ts';
const PG_INTERNALS = 'src/database/pg-internals.ts';
const LEAVES = 'src/policy/lower/leaves.ts';
const OPERATORS = 'src/policy/operators.ts';
const OPERATOR_SQL = 'src/policy/emit/operator-sql.ts';
const PLACES = 'src/policy/scalars/places.ts';
const SPECIALISE = 'src/policy/lower/specialise.ts';
const SIMPLIFY = 'src/policy/lower/simplify.ts';
const JAVASCRIPT = 'src/policy/emit/javascript.ts';
const CLOSURES = 'src/policy/emit/closures.ts';
const DECISION = 'src/policy/emit/decision.ts';
const LOST_REFERENCES = 'src/policy/lower/lost-references.ts';
const WHERE = 'src/policy/emit/where.ts';
const HOISTING = 'src/policy/hoisting.ts';
const SHAPE_NEEDS = 'src/policy/emit/shape-needs.ts';
const FOLD = 'src/policy/fold.ts';
const EXPLAIN = 'src/policy/analyse/explanation.ts';
const TRACE = 'src/explain/trace.ts';
const COLLATION = 'src/policy/collation.ts';
const NUMERALS = 'src/policy/scalars/numerals.ts';
const VALUES = 'src/policy/values.ts';
const LISTS = 'src/policy/scalars/list-values.ts';
const FACTS = 'src/policy/column-facts.ts';
const RESIDUAL = 'src/policy/residual.ts';
const ROUTING = 'src/policy/analyse/routing.ts';
const CANONICAL = 'src/policy/analyse/canonical.ts';
const JSON_PARTS = 'src/policy/emit/json-parts.ts';
const STORED_ROWS = 'src/policy/stored-rows.ts';
const SUBSUMES = 'src/policy/analyse/subsumes.ts';

const BETWEEN_STATEMENTS =
  'only a write between its two statements shows it: see test/records/write/writes-that-wait.test.ts';

export const FAULTS: readonly Fault[] = [
  ...FRONT_END_FAULTS,
  fault(
    STORED_ROWS,
    'a reference by another column is read as it is stored',
    /return i < 0 \? idReferredTo\('s', relation\) : keyIn\(`r\$\{i\}`, relation\.references!\);/,
    "return ident('s', relation.column);",
  ),
  fault(
    STORED_ROWS,
    'a reference by another column is joined by the key',
    /const \{ table, column: referenced \} = references!;/,
    'const { table, key: referenced } = references!;',
  ),
  fault(STORED_ROWS, 'records without a reference are lost', /LEFT JOIN/, 'JOIN'),
  fault(JSON_PARTS, 'numbers of json are rounded', /context\?\.source \?\? String\(value\)/, 'String(value)'),
  fault(JSON_PARTS, 'a part is the first key alone', /of keys\) \{/, 'of keys.slice(0, 1)) {'),
  fault(JSON_PARTS, 'a float of json may be Infinity', /\|\\d\{301\}\)/, ')'),
  fault(STORED_ROWS, 'a string of json may be any value', /is\('string', (sql`[^`]*`)\)/, '$1'),
  fault(STORED_ROWS, 'an int of json may have a fraction', /\$\{number\} % 1 = 0 AND /, ''),
  fault(
    STORED_ROWS,
    'a part leads to the whole value',
    /\$\{column\} #> \$\{raw\(quotedText\(`\{\$\{keys\.join\(','\)\}\}`\)\)\}/,
    '${column}',
  ),
  fault(LOWER, 'not keeps the polarity', /polarity: !polarity/, 'polarity'),
  fault(LOWER, 'De Morgan is forgotten', /\(node\.kind === 'and'\) === polarity/, "(node.kind === 'and')"),
  fault(
    LOWER,
    'an unknown verdict counts as false',
    /this\.#context\.signature\.decided\[node\.index\] === polarity/,
    '(this.#context.signature.decided[node.index] === true) === polarity',
  ),
  fault(LOWER, 'is null is swapped', /node\.negated === polarity/, 'node.negated !== polarity'),
  fault(
    LOWER,
    'none is any',
    /const wanted = quantifier === 'none' \? !place\.polarity : place\.polarity/,
    'const wanted = place.polarity',
  ),
  fault(
    LOWER,
    'all asks that no element is false, not that none is other than true',
    /const exception = complementOf\(this\.#element\(node, place, source\)\)/,
    'const exception = this.#element(node, { ...place, polarity: !place.polarity }, source)',
  ),
  fault(
    LOWER,
    'a to-many behind an absent step is empty',
    /and\(\[isPresent\(key\), (exists\(exception, true\))\]\)/,
    '$1',
  ),
  fault(
    LOWER,
    'some element negated',
    /exists\(this\.#element\(node, place, source\), false\)/,
    'exists(this.#element(node, place, source), true)',
  ),
  fault(
    LOWER,
    'is null of an absent step is unknown',
    /complementOf\(present\)/,
    'wrap(complementOf(isPresent(column)))',
  ),
  fault(
    LOWER,
    'an absent request value is false',
    /(if \(stateOf\(left, states\) === ABSENT \|\| stateOf\(right, states\) === ABSENT\)) return FALSE/,
    '$1 return constant(!place.polarity)',
  ),
  fault(LOWER, 'a list with an absent element is all there', /if \(isPartial && /, 'if (false && '),
  fault(LOWER, 'the complement is not taken', /\{ op: complement, negated: false \}/, '{ op, negated: false }'),
  fault(
    LOWER,
    'an operator without complement is not negated',
    /: \{ op, negated: true \}/,
    ': { op, negated: false }',
  ),
  fault(
    LEAVES,
    'the empty list is unknown',
    /return isEmpty \? OPERATORS\[op\]\.negative === true : undefined/,
    'return isEmpty ? (OPERATORS[op].negative ? undefined : false) : undefined',
  ),
  fault(
    LEAVES,
    'not in an empty list is false',
    /return isEmpty \? OPERATORS\[op\]\.negative === true : undefined/,
    'return isEmpty ? false : undefined',
  ),
  fault(
    LEAVES,
    'a settled number test forgets the null',
    /return result \? isPresent\(column\) : FALSE/,
    'return result ? TRUE : FALSE',
  ),
  fault(LEAVES, 'a fraction against an int is rounded down', /'ceil' : 'floor'/, "'floor' : 'floor'"),
  fault(
    LOWER,
    'variables resolve to the record',
    /return \{ wrap: itself, source \};/,
    'return { wrap: itself, source: this.#roots.record };',
  ),
  fault(LOWER, 'next is the record', /source: this\.#context\.roots\.next/, 'source: this.#context.roots.record'),
  fault(
    COLUMNS,
    'a written record has the members and the partner that are stored',
    /source\.state === 'stored' \|\| relation\.kind === 'has_many'/,
    'true',
  ),
  fault(
    COLUMNS,
    'a written record holds what belongs to it',
    /source\.state === 'stored' \|\| relation\.kind === 'has_many'/,
    "source.state === 'stored'",
  ),
  fault(
    LOWER,
    'what a written record leads to is written too',
    /state: 'stored' \};\n {2}\}/,
    'state: this.#roots.record.state };\n  }',
  ),
  fault(
    COLUMNS,
    'the foreign key of a written record leads to its own members',
    /steps\.length > 0 \|\| key\.kind === 'slot'/,
    "key.kind === 'slot'",
  ),
  fault(
    CONDITION,
    'the record of a create is a stored one',
    /record: WRITTEN_RECORD, next: WRITTEN_RECORD/,
    'record: RECORD, next: RECORD',
  ),
  fault(
    COMPILE,
    'the second half of an update rule is asked of the stored record',
    /lowered\(signature, WRITTEN_ROOTS\)/,
    'lowered(signature, STORED_ROOTS)',
  ),
  fault(COMPILE, 'a create is asked as a list is', /isCreate \? WRITTEN_ROOTS : STORED_ROOTS/, 'STORED_ROOTS'),
  fault(OPERATORS, 'complement of < is >', /strict: true,\s*complement: '>='/, "strict: true, complement: '>'"),
  fault(OPERATORS, 'complement of >= is <=', /direction: 'up',\s*complement: '<'/, "direction: 'up', complement: '<='"),
  fault(OPERATORS, 'mirror of <= is <=', /complement: '>',\s*mirror: '>='/, "complement: '>', mirror: '<='"),
  fault(
    OPERATORS,
    'texts are ordered by UTF-16',
    /\? `rank\(\$\{left\}, \$\{right\}\) \$\{symbol\} 0`/,
    '? `${left} ${symbol} ${right}`',
  ),
  fault(OPERATOR_SQL, 'texts are ordered by the default collation', /COLLATE "C"/, ''),
  fault(OPERATOR_SQL, 'not in is IS DISTINCT', /<> ALL\(/, '<> ANY('),
  fault(
    OPERATOR_SQL,
    'contains is LIKE',
    /strpos\(\$\{render\(left\)\}, \$\{render\(right\)\}\) \$\{raw\(negated \? '= 0' : '> 0'\)\}/,
    "${render(left)} ${raw(negated ? 'NOT LIKE' : 'LIKE')} '%' || ${render(right)} || '%'",
  ),
  fault(OPERATOR_SQL, 'contains is found from the second character on', /'> 0'/, "'> 1'"),
  fault(OPERATOR_SQL, 'the prefix is not rechecked, nor bounded', /\[low, high, test\]/, '[low]'),
  fault(OPERATOR_SQL, 'ends with takes octets for characters', /char_length\(/, 'octet_length('),
  fault(
    OPERATOR_SQL,
    'no list holds an absent value, for certain',
    /negated && right\.kind === 'column' \?/,
    'false ?',
  ),
  fault(PLACES, 'within: a degree of longitude is as long everywhere', /circle\.cosine \* b \* c/, 'b * c'),
  fault(PLACES, 'within: the box is narrower than the circle', /\* 1\.001 \+ 1e-6/, '* 0.5'),
  fault(PLACES, 'within: the box ends at the line of dates', /lng - wide < -180 \|\| lng \+ wide > 180/, 'false'),
  fault(OPERATOR_SQL, 'within: not within is within', /if \(negated\) return sql`NOT /, 'if (negated) return sql`'),
  fault(OPERATOR_SQL, 'not ends with is ends with', /negated \? '<>' : '='/, "negated ? '=' : '='"),
  fault(
    SPECIALISE,
    'an all-absent list is empty',
    /present\.length === 0 \? ABSENT : PARTIAL/,
    'present.length === 0 ? EMPTY : PARTIAL',
  ),
  fault(
    SPECIALISE,
    'a partial list is whole',
    /present\.length === 0 \? ABSENT : PARTIAL/,
    'present.length === 0 ? ABSENT : PRESENT',
  ),
  fault(
    SPECIALISE,
    'an empty list is absent',
    /if \(given\.length === 0\) return EMPTY/,
    'if (given.length === 0) return ABSENT',
  ),
  fault(
    SPECIALISE,
    'a repeated parameter is its first value',
    /if \(isText && typeof raw !== 'string'\) return ABSENT;\n(.*)scalar\.readText\(raw as string\)/,
    "if (isText && raw === undefined) return ABSENT;\n$1scalar.readText(typeof raw === 'string' ? raw : String((raw as readonly string[])[0]))",
  ),
  fault(
    SPECIALISE,
    'signatures do not tell verdicts apart (S2)',
    /const digit = verdict === undefined \? 2 : verdict \? 1 : 0/,
    'const digit = verdict ? 1 : 0',
  ),
  fault(
    SPECIALISE,
    'slots of one name share one reading (S3)',
    /operand\.detail,\s+operand\.type,\s+operand\.list,/,
    'operand.detail,',
  ),
  fault(
    SPECIALISE,
    'a partial list settles what it does not hold',
    /list\.state\(binding\) === PARTIAL && answer !== member \? undefined : answer/,
    'answer',
  ),
  fault(SPECIALISE, 'one value is not a list', /source === 'query' \? \[raw\]/, "source === 'query' ? raw"),
  fault(
    SPECIALISE,
    'a swapped comparison keeps its operator',
    /op: mirror, left: node\.right, right: node\.left/,
    'op: node.op, left: node.right, right: node.left',
  ),
  fault(
    SIMPLIFY,
    'a step before the elements loses their conditions',
    /\[\.\.\.items\.toSpliced\(at, 1\), step\.condition\]/,
    '[step.condition]',
  ),
  fault(SIMPLIFY, 'bounds that meet have no value', /areCrossed = order > 0/, 'areCrossed = order >= 0'),
  fault(SIMPLIFY, 'a part before the elements is lost', /and\(\[\.\.\.beside!, existsOf/, 'and([existsOf'),
  fault(
    WHERE,
    'an absent key among excluded ones decides',
    /isTested\(own\) \? list : \{ \.\.\.list, rest: \[\.\.\.rest, present\] \}/,
    'list',
  ),
  fault(WHERE, 'an absent column is among excluded keys', /isTested\(outer\) \? isNone : /, ''),
  fault(SIMPLIFY, 'two equal tests for null cancel each other', /if \(a\.negated === b\.negated\) return a;/, ''),
  fault(SIMPLIFY, 'a union of lists keeps the first', /\? \[\.\.\.x, \.\.\.y\] : /, '? x : '),
  fault(
    SIMPLIFY,
    'an intersection of lists keeps the first',
    /: x\.filter\(\(value\) => y\.includes\(value\)\)/,
    ': x',
  ),
  fault(
    SIMPLIFY,
    'and keeps the wider bound',
    /return aIsNarrower === \(kind === 'and'\) \? a : b/,
    "return aIsNarrower === (kind === 'and') ? b : a",
  ),
  fault(
    SIMPLIFY,
    'a bound at the same value ignores strictness',
    /order === 0 \? aIsStrict/,
    'order === 0 ? !aIsStrict',
  ),
  fault(
    SIMPLIFY,
    'a test or its complement is always true',
    /kind === 'and' \? FALSE : bothPresent\(a\)/,
    "kind === 'and' ? FALSE : TRUE",
  ),
  fault(
    SIMPLIFY,
    'to-many walks are merged',
    /\(item\.relation\.kind === 'belongs_to' \|\| item\.relation\.kind === 'has_one'\)/,
    'true',
  ),
  fault(
    SIMPLIFY,
    'walks by different keys are one (M2)',
    /exists\(\$\{existsKey\(cond\)\},\$\{operandKey\(cond\.key, bound\)\},/,
    'exists(${existsKey(cond)},',
  ),
  fault(
    SIMPLIFY,
    'shared walks under NOT EXISTS are joined the wrong way (M3)',
    /first\.negated \? other\(kind\) : kind/,
    'kind',
  ),
  fault(
    SPECIALISE,
    'a partial list has the signature of a whole one (S1)',
    /number \* STATES \+ states\[i\]!/,
    'number * STATES + (states[i] === PARTIAL ? PRESENT : states[i]!)',
  ),
  fault(SIMPLIFY, 'nullable columns are always there', /&& column\.nullable \? /, '&& false ? '),
  fault(
    SIMPLIFY,
    'presence swallows its test in and',
    /if \(a\.negated\) return kind === 'and' \? b : a/,
    "if (a.negated) return kind === 'and' ? a : b",
  ),
  fault(
    SIMPLIFY,
    'columns of different rows are one',
    /a\.source\.id === b\.source\.id && a\.column === b\.column/,
    'a.column === b.column',
  ),
  fault(JAVASCRIPT, 'generated code does not guard absence', /const guards = guarded\.map\(/, 'const guards = [].map('),
  fault(CLOSURES, 'closures do not guard absence', /return x != null && y != null && holds/, 'return holds'),
  fault(
    DECISION,
    'absent keys have elements',
    /: related\.one\(relation\.collection, key as string\)|\? related\.one\(relation\.collection, key as string\)/,
    '? related.one(relation.collection, (key as string).toUpperCase())',
  ),
  fault(CLOSURES, 'closures share one row for all sources', /frame\.bound\[id\] = row/, 'frame.bound[2] = row'),
  fault(CLOSURES, 'fused orderings do not guard absence', /return x != null && x < /, 'return x! < '),
  fault(JAVASCRIPT, 'one of few must be the last', /\.join\(' \|\| '\)\}\)`;/, ".slice(-1).join(' || ')})`;"),
  fault(
    DECISION,
    'only the first member of a written record counts',
    /\(key as readonly string\[\]\)\.map/,
    '(key as readonly string[]).slice(0, 1).map',
  ),
  fault(
    DECISION,
    'the partner is looked up as an owner',
    /return by === 'id'/,
    "return relation.kind === 'belongs_to'",
  ),
  fault(WHERE, 'members are found by their owner', /if \(by !== 'owner'\)/, "if (by === 'id')"),
  fault(WHERE, 'all members must be the element', /\$\{link\} = ANY\(\$\{key\}\)`/, '${link} = ALL(${key})`'),
  fault(WHERE, 'the resulting record is read from the stored row', /ident\(next, column\)/, 'ident(alias, column)'),
  fault(
    EXPLAIN,
    'explain takes the members of a written record from the database',
    /if \(!isWritten \|\| relation\.kind === 'has_many'\)/,
    'if (true)',
  ),
  fault(
    TRACE,
    'explain takes an update as allowed that holds for one of its two records',
    /explanations\.every\(\(\{ allowed \}\) => allowed\)/,
    'explanations.some(({ allowed }) => allowed)',
  ),
  fault(WHERE, 'not exists is exists', /exists\.negated \? 'NOT EXISTS' : 'EXISTS'/, "'EXISTS'"),
  fault(
    WHERE,
    'the link is read backwards',
    /const link = ident\(pair, relation\.sourceColumn\)/,
    'const link = ident(pair, relation.targetColumn)',
  ),
  fault(
    WHERE,
    'or without parentheses',
    /return item\.kind === 'and' \|\| item\.kind === 'or' \? sql`\(\$\{printed\}\)` : printed/,
    'return printed',
  ),
  fault(HOISTING, 'negated walks are hoisted', /state === 'written' \|\| negated\)/, "state === 'written')"),
  fault(WHERE, 'elements are read from the link table only', /if \(!isRead\)/, 'if (true)'),
  fault(WHERE, 'a link to a record that is gone counts', /guard \?\? relation\.mayBeLost \?\? reads/, 'guard ?? reads'),
  fault(
    LOST_REFERENCES,
    'a rule relies on foreign keys',
    /new LostReferenceGuard\(rows\)\.of\(checked\)/,
    'rows && checked',
  ),
  fault(
    LOST_REFERENCES,
    'a rule that a lost reference makes unknown is false, and its opposite true',
    /if \(wanted\) return/,
    'if (true) return',
  ),
  fault(
    WHERE,
    'identifiers are not compared as text',
    /const asText = !areOfOneForm\(elementOf\(test\.left\.type\) \?\? test\.left\.type, test\.right\.type\)/,
    'const asText = false',
  ),
  fault(
    EXPLAIN,
    'an explanation takes none for any',
    /\? \{ value: opposite\(value\), inverts: true, \.\.\.asked \}/,
    '? { value, ...asked }',
  ),
  fault(
    EXPLAIN,
    'an explanation takes unknown for false',
    /return parts\.some\(\(\{ value \}\) => value === undefined\) \? undefined : !settling/,
    'return !settling',
  ),
  fault(
    WHERE,
    'a key list is of every caller',
    /const conditions = \[sql`\$\{link\} = \$\{this\.#key\(exists\)\}`, /,
    'const conditions = [sql`${link} IS NOT NULL`, ',
  ),
  fault(LOWER, 'a caller without an id has no elements', /isAbsent \? \(\) => FALSE : itself/, 'itself'),
  fault(
    SPECIALISE,
    'the id of the caller is not part of the signature',
    /this\.slots\[slot\]!\.meetsColumn = true;\n {4}return \{ \.\.\.holder/,
    'return { ...holder',
  ),
  fault(COLUMNS, 'null to null is a change', /return or\(\[equal, and\(absent\)\]\)/, 'return equal'),
  fault(LOWER, 'changed is changed_only', /node\.unchanged === place\.polarity \? same/, '!place.polarity ? same'),
  fault(
    LOWER,
    'members that were taken away are not a change',
    /return and\(missing\)/,
    'return and(missing.slice(1))',
  ),
  fault(
    LEAVES,
    'one or more is none',
    /return up \? atLeastOne\(count\) : noneOf\(count\)/,
    'return up ? noneOf(count) : atLeastOne(count)',
  ),
  fault(LEAVES, 'a count stops at the literal', /limit: value \+ 1/, 'limit: value'),
  fault(
    LOWER,
    'a count behind an absent step is nothing',
    /return wrap\(and\(\[isPresent\(key\), test\]\)\)/,
    'return and([wrap(TRUE), test])',
  ),
  fault(FOLD, 'matches: letter case counts', /\.toLowerCase\(\)/, ''),
  fault(FOLD, 'matches: marks count', /\.replaceAll\(\/\\p\{M\}\/gu, ''\)/, ''),
  fault(FOLD, 'matches: compatibility characters stay', /'NFKD'/, "'NFD'"),
  fault(FOLD, 'matches: a final sigma is another letter', /\.replaceAll\('ς', 'σ'\)/, ''),
  fault(FOLD, 'matches: % in a needle stands for anything', /\[\\\\%_\]/, '[\\\\_]'),
  fault(FOLD, 'matches: _ in a needle stands for anything', /\[\\\\%_\]/, '[\\\\%]'),
  fault(FOLD, 'matches: a backslash in a needle is lost', /\[\\\\%_\]/, '[%_]'),
  fault(
    SPECIALISE,
    'matches: a needle of marks finds everything',
    /isNeedle && isBlankNeedle\(/,
    'false && isBlankNeedle(',
  ),
  fault(OPERATOR_SQL, 'matches: not matches is matches', /negated \? 'NOT LIKE' : 'LIKE'/, "'LIKE'"),
  fault(
    OPERATOR_SQL,
    'matches: the field itself is looked in',
    /column: foldedColumn\(left\.column\)/,
    'column: left.column',
  ),
  fault(JAVASCRIPT, 'matches: the needle is not folded', /this\.#folded\(right\) : /, 'this.#operand(right) : '),
  fault(LOWER, 'ancestors beyond the last do not matter', /isCut && negated && \{ beyond: true \}/, '{}'),
  fault(
    SIMPLIFY,
    'ancestors: every count is known',
    /if \(exists\.relation\.kind !== 'ancestors'\) return TRUE/,
    'return TRUE',
  ),
  fault(
    LEAVES,
    'ancestors: none of those that are known is none',
    /\(exists\.relation\.kind === 'ancestors' && \{ beyond: true \}\)/,
    '{}',
  ),
  fault(
    LEAVES,
    'ancestors: a count beyond the last is not the exception',
    /return beyond \? count : \{ \.\.\.count, beyond: true \}/,
    'return count',
  ),
  fault(DECISION, 'ancestors are counted as far as they are known', /return next \? undefined : rows/, 'return rows'),
  fault(WHERE, 'ancestors are counted as far as they are known in SQL', / HAVING \$\{isWhole\}/, ''),
  fault(
    JAVASCRIPT,
    'ancestors: a count that is absent is not an exception in generated code',
    /\$\{found\} === undefined \|\| /,
    '${found} !== undefined && ',
  ),
  fault(
    CLOSURES,
    'ancestors: a count that is absent is not an exception in closures',
    /if \(isBeyond && x === undefined\) return y != null;/,
    '',
  ),
  fault(
    WHERE,
    'ancestors: a count that is absent is not an exception in SQL',
    /: raw\('TRUE'\);\n/,
    ": raw('FALSE');\n",
  ),
  fault(
    DECISION,
    'ancestors: one more counts in JavaScript',
    /rows\.length === MOST_ANCESTORS/,
    'rows.length > MOST_ANCESTORS',
  ),
  fault(DECISION, 'ancestors: a circle has no end', /id != null && !met\.has\(id\)/, 'id != null'),
  fault(
    DECISION,
    'ancestors: the first is left out',
    /rows\.push\(row\);\s*met\.add/,
    'if (id !== first) rows.push(row);\n    met.add',
  ),
  fault(WHERE, 'ancestors: what is beyond is looked for below', / && !cond\.beyond/, ''),
  fault(WHERE, 'ancestors: one more counts below', /\."place" < \$\{LAST\}/, '."place" <= ${LAST}'),
  fault(WHERE, 'ancestors: one fewer counts below', /\."place" < \$\{LAST\}/, '."place" < ${LAST} - 1'),
  fault(
    WHERE,
    'ancestors: one more counts in SQL',
    /cardinality\(\$\{path\}\) < \$\{LAST\}/,
    'cardinality(${path}) <= ${LAST}',
  ),
  fault(
    WHERE,
    'ancestors: a circle has no end in SQL',
    /cardinality\(\$\{path\}\) < \$\{LAST\} AND \$\{isNew\}/,
    'cardinality(${path}) < ${LAST}',
  ),
  fault(WHERE, 'ancestors: a chain of 32 always goes on', /= \$\{LAST\} AND \$\{isNew\}/, '= ${LAST}'),
  fault(WHERE, 'ancestors: what is beyond is asked for too', /\(\$\{goesOn\} OR \$\{met\}\)/, '(${goesOn} AND ${met})'),
  fault(
    EXPLAIN,
    'ancestors: the explanation ends with the last',
    /next \? \[\.\.\.elements, /,
    'false ? [...elements, ',
  ),
  fault(
    SHAPE_NEEDS,
    'ancestors: only the first is needed',
    /\? \{ relation: step\.slice\(FOLLOWED\.length\), isFollowed: true, needs \}/,
    '? { relation: step.slice(FOLLOWED.length), needs }',
  ),
  fault(SHAPE_NEEDS, 'what @next needs is loaded for @record (N1)', /\[1, next\]/, '[1, record]'),
  fault(CLOSURES, 'a count counts all', /if \(condition\(frame\)\) count\+\+/, 'count++'),
  fault(COLLATION, 'the successor is the prefix', /last === SURROGATES - 1 \? 0xe000 : last \+ 1/, 'last'),
  fault(COLLATION, 'surrogates rank below U+E000', /unit < 0xe000 \? unit \+ 0x2000 : unit - 0x800/, 'unit'),
  fault(
    COLLATION,
    'U+10FFFF has a successor',
    /while \(points\.at\(-1\) === LAST_CODE_POINT\) points\.pop\(\)/,
    'if (points.at(-1) === LAST_CODE_POINT) points.pop()',
  ),
  fault(NUMERALS, 'n >= 1.5 is n >= 1', /value: floor \+ 1/, 'value: floor'),
  fault(
    NUMERALS,
    'beyond all ints is below them',
    /return above === \(direction === 'down'\)/,
    "return above !== (direction === 'down')",
  ),
  fault(
    NUMERALS,
    'a rounded literal is equal',
    /if \(direction === undefined\) return negative === true;\s*\/\/ The literal/,
    'if (direction === undefined) return !negative;\n  // The literal',
  ),
  fault(
    NUMERALS,
    'between two ints everything is equal',
    /if \(direction === undefined\) return negative === true;\s*return \{ op: orderOf\(direction, direction === 'up'\)/,
    "if (direction === undefined) return !negative;\n  return { op: orderOf(direction, direction === 'up')",
  ),
  fault(
    VALUES,
    'an int may have leading zeros',
    /const INT = \/\^-\?\(\?:0\|\[1-9\]\[0-9\]\*\)\$\//,
    'const INT = /^-?[0-9]+$/',
  ),
  fault(
    VALUES,
    'uuids keep their letter case',
    /UUID_FORMAT\.test\(text\) \? text\.toLowerCase\(\)/,
    'UUID_FORMAT.test(text) ? text',
  ),
  fault(VALUES, 'times keep zeros after the last decimal', /withoutTrailingZeros\(text\.slice\(9\)\)/, 'text.slice(9)'),
  fault(
    VALUES,
    '24:00:00 is a time',
    /\(\?:\[01\]\\d\|2\[0-3\]\):\[0-5\]\\d:\[0-5\]\\d\(\?:\\\./,
    '(?:[01]\\d|2[0-4]):[0-5]\\d:[0-5]\\d(?:\\.',
  ),
  fault(
    VALUES,
    'plain numerals compare as strings',
    /const lengths = wholeLength\(left\) - wholeLength\(right\);/,
    'const lengths = 0;',
  ),
  fault(
    VALUES,
    'negative numerals compare by magnitude',
    /isNegative \? rankMagnitudes\(right, left\)/,
    'isNegative ? rankMagnitudes(left, right)',
  ),
  fault(NUMERALS, 'a literal with a fraction is cut towards zero', /\(numeral\.startsWith\('-'\) \? 1n : 0n\)/, '0n'),
  fault(
    CLOSURES,
    'closures compare bigints as strings',
    /\|\| gridOf\(left\.type\)\) return undefined;/,
    ') return undefined;',
  ),
  fault(
    VALUES,
    'the bits after the last byte may be set',
    / \|\| btoa\(binary\) !== text\) return undefined;/,
    ') return undefined;',
  ),
  fault(LISTS, 'an element ends at its first quotation mark', /text\.replace\(\/\["\\\\\]\/g, '\\\\\$&'\)/, 'text'),
  fault(
    LISTS,
    'a comma within an element parts it',
    /list\.slice\(2, -2\)\.split\('","'\)/,
    "list.slice(1, -1).replaceAll('\"', '').split(',')",
  ),
  fault(LISTS, 'numbers of a list are strings', /texts\.map\(Number\)/, 'texts'),
  fault(LISTS, 'the list of an earlier record is asked', /if \(list !== latestList\)/, "if (latestList === '{}')"),
  fault(
    LOWER,
    'an empty list may contain an absent value',
    /if \(polarity \|\| !mayBeAbsent\) return test;/,
    'return test;',
  ),
  fault(
    LOWER,
    'an absent list contains nothing',
    /return or\(\[test, wrap\(and\(\[isPresent\(key\), exists\(TRUE, true\)\]\)\)\]\);/,
    'return or([test, wrap(exists(TRUE, true))]);',
  ),
  fault(
    OPERATORS,
    'a list contains a value that only its text contains',
    /if \(type !== undefined && elementOf\(type\)\) return/,
    'if (false) return',
  ),
  fault(
    OPERATOR_SQL,
    'not contains is contains in SQL',
    /const held = sql`\(\$\{render\(left\)\} @>/,
    'negated = false;\n  const held = sql`(${render(left)} @>',
  ),
  fault(
    WHERE,
    'no element is some element',
    /exists\.negated \? 'NOT EXISTS' : 'EXISTS'\)\} \(SELECT 1 FROM \$\{from\}\$\{where\}\)/,
    "'EXISTS')} (SELECT 1 FROM ${from}${where})",
  ),
  fault(
    WHERE,
    'every element of a list counts',
    /return sql`\(SELECT count\(\*\) FROM \$\{values\}\$\{met\}\)`;/,
    'return sql`(SELECT count(*) FROM ${values})`;',
  ),
  fault(
    EXPLAIN,
    'a null list is an empty one',
    /relation\.kind === 'elements' && own\(row, relation\.field\.name\) == null;/,
    'false;',
  ),
  fault(VALUES, 'small bytes have one digit', /\.toString\(16\)\.padStart\(2, '0'\)/, '.toString(16)'),
  fault(
    VALUES,
    'decimals keep zeros after the last decimal',
    /const decimals = withoutTrailingZeros\(padded\.slice\(-places\)\);/,
    'const decimals = padded.slice(-places);',
  ),
  fault(
    VALUES,
    'a decimal may have any number of digits',
    /fraction\.length <= MOST_DIGITS && isWithinGrid\(DECIMALS, plain\)/,
    'true',
  ),
  fault(VALUES, 'dates have a year zero', /year >= 1 && exists\(/, 'exists('),
  fault(
    VALUES,
    'every month has 31 days for a date',
    /day, hour: 0, minute: 0, second: 0 \}\)/,
    'day: Math.min(day, 28), hour: 0, minute: 0, second: 0 })',
  ),
  fault(VALUES, '@today is the day in UTC', /zone === UTC \?/, 'zone !== "" ?'),
  fault(SPECIALISE, '@today does not move', /dayOf\(request\.now, zone, seconds\)/, 'dayOf(request.now, zone)'),
  fault(VALUES, 'datetimes ignore their offset', /epochSeconds\(time\) - offset/, 'epochSeconds(time)'),
  fault(VALUES, 'offsets are added', /epochSeconds\(time\) - offset/, 'epochSeconds(time) + offset'),
  fault(
    VALUES,
    'every fourth year is leap but 30 February exists',
    /return year % 4 === 0 && \(year % 100 !== 0 \|\| year % 400 === 0\) \? 29 : 28/,
    'return 30',
  ),
  fault(VALUES, 'NUL is text', /text\.isWellFormed\(\) && !text\.includes\('\\0'\)/, 'text.isWellFormed()'),
  fault(
    VALUES,
    'lone surrogates are text',
    /text\.isWellFormed\(\) && !text\.includes\('\\0'\)/,
    "!text.includes('\\0')",
  ),
  fault(VALUES, 'microseconds are padded on the left', /padEnd\(6, '0'\)/, "padStart(6, '0')"),
  fault(
    VALUES,
    'the year 10000 is read',
    /if \(seconds < FIRST_SECOND \|\| seconds > LAST_SECOND\) return undefined/,
    'if (seconds < FIRST_SECOND) return undefined',
  ),
  fault(
    WRITTEN_ROW,
    'a create is written whatever its rules say',
    /WHERE \$\{condition\}\n {4}RETURNING/,
    'WHERE TRUE OR ${condition}\n    RETURNING',
  ),
  fault(
    WRITTEN_ROW,
    'an update is judged by the stored row alone',
    /return rowOf\(of, row, \{\n/,
    'return rowOf(of, { ...row, writing: { values: [], members: [], partners: [] } }, {\n',
  ),
  fault(
    WRITTEN_ROW,
    'members that leave are judged as members',
    /WHERE id <> ALL\(\$\{leaving\}\)/,
    'WHERE TRUE OR id <> ALL(${leaving})',
  ),
  fault(
    WRITTEN_ROW,
    'a new partner is judged as the stored one',
    /change === undefined \? otherwise\.partner\(relation, key\)/,
    'true ? otherwise.partner(relation, key)',
  ),
  fault(
    WRITTEN_ROW,
    'what joins is judged as if it had not',
    /SELECT unnest\(\$\{joining\}\)\)/,
    'SELECT unnest(${joining}) WHERE FALSE)',
  ),
  fault(LINKS, 'members that the caller may not read leave', /readable\(access, collection, 'x'\),/, ''),
  fault(
    HAS_ONE,
    'a hidden partner is let go',
    /holder === undefined \|\| \(await isReadable/,
    'true || (await isReadable',
  ),
  fault(
    HAS_ONE,
    'the old partner is let go without a rule',
    /if \(await locked\.write\(reading, writing\)\) return undefined;/,
    'await locked.write(reading, writing);\n  if (writing.values.length > 0) return undefined;',
  ),
  fault(
    UPDATE,
    'the record is judged after its partners are written',
    /const isWritten = await/,
    'await writePartners(reading, { id, changes: writing.partners, deferred });\n  const isWritten = await',
  ),
  fault(
    UPDATE,
    'the record is judged after its members are written',
    /const isWritten = await/,
    'for (const member of writing.members) await writeMembers(reading, id, member);\n  const isWritten = await',
  ),
  fault(
    RECORD_VIEW,
    'what the caller may never read is shown',
    /permit\.verdict === 'deny'\)\.map/,
    "permit.verdict === 'allow').map",
  ),
  fault(
    RECORD_VIEW,
    'a mask that depends on the record hides nothing',
    /if \(cells\[flags \+ i\] !== 't'\)/,
    'if (cells[flags + i] === null)',
  ),
  fault(RECORD_VIEW, 'a hidden value is shown as null', /shown\.delete\(name\);/, 'void name;'),
  fault(RECORD_VIEW, 'flags are read a place too far', /const flags = from \+ this/, 'const flags = 1 + from + this'),
  fault(
    'src/records/access-context.ts',
    'a has_one shows what its reference hides',
    /own === undefined \? row : sql/,
    'own !== own ? row : own === undefined || true ? row : sql',
  ),
  fault(
    'src/policy/lower/masking.ts',
    'a filter finds what a mask hides',
    /if \(rule === undefined \|\| rule\.verdict === 'allow'\) return column;/,
    'if (true) return column;',
  ),
  fault(INPUT, 'what the caller may never set is written', /if \(denied\.length > 0\)/, 'if (denied.length > 99)'),
  fault(
    INPUT,
    'rules of members that depend on the record are skipped',
    /permit\.verdict === 'depends'\);/,
    "permit.verdict === 'allow');",
  ),
  fault(
    LOCKED_ROW,
    'an update is judged without the rules of its members',
    /this\.#rules = rules;/,
    'this.#rules = rules.slice(0, 1);',
  ),
  fault(
    UPDATE,
    'an update in one statement is judged without the rules of its members',
    /'update'\), \.\.\.members\.map\(\(\{ permit \}\) => permit\)\]/,
    "'update')]",
  ),
  fault(
    WRITE_PLAN,
    'a write in one statement refers to what the caller may not read',
    /\.\.\.readableReferences\(reading, references\),/,
    '',
  ),
  fault(
    UPDATE,
    'an update in one statement leaves members and partners out',
    /input\.links\.length \+ input\.hasOnes\.length > 0/,
    'false',
  ),
  fault(
    WRITTEN_ROW,
    'a rule that sees both records sees the stored one twice',
    /FROM \(\$\{changedRow\(stored\.related, of, row\)\}\) AS/,
    'FROM (${changedRow(stored.related, of, { ...row, writing: { values: [], members: [], partners: [] } })}) AS',
  ),
  fault(
    WRITE_PLAN,
    'a write in one statement is held to no check',
    /\.\.\.violations\.map\(\(each\) => \(isUpdate[^\n]*\n/,
    '',
  ),
  fault(
    LOCKED_ROW,
    'an update of a locked row is held to no check',
    /\.\.\.this\.#checks\.map\(\(\{ violation \}\) => passesUpdate\(violation, changed\)\),/,
    '',
  ),
  fault(
    CREATE,
    'a create in a transaction is held to no check',
    /\.\.\.checks\.map\(\(\{ violation \}\) => passesCreate\(violation\.within\(tenant\)\)\),/,
    '',
  ),
  fault(
    MATCHING,
    'a write by filter counts a refused record as written',
    /if \(refusal === undefined\) changed\+\+;/,
    'if (true) changed++;',
  ),
  fault(
    DENIAL_MESSAGE,
    'a denial has the message of the first rule of several',
    /return other === undefined \? only\?\.message : undefined;/,
    'return only?.message;',
  ),
  fault(CHECKS, 'transitions hold only for other fields', /column\) === false\) return \[\];/, 'column)) return [];'),
  fault(CHECKS, 'what is unknown fails a check', /IS NOT TRUE/, 'IS FALSE'),
  fault(
    CHECKS,
    'a check of an update judges the record before it',
    /violation\.update\.allows\(STORED, WRITTEN, changed\)/,
    'violation.update.allows(STORED, STORED, changed)',
  ),
  fault(
    CREATE,
    'a create is judged without the rules of its members',
    /\[permit, \.\.\.members\.map\(\(member\) => member\.permit\)\]/,
    '[permit]',
  ),
  fault(
    SINGLE_STATEMENT,
    'a write shows what the caller may not read',
    /cells\.at\(-1\) === 't' \?/,
    'cells.length > 0 ?',
  ),
  fault(
    SINGLE_STATEMENT,
    'what is read of the result is read as it was before the write',
    /return !asked\.some\(/,
    'return true || !asked.some(',
  ),
  fault(
    SINGLE_STATEMENT,
    'a record that is its own partner keeps it',
    /collection === name\)\) return false;/,
    'collection !== collection)) return false;',
  ),
  fault(GATHERED, 'a statement is answered as the one beside it', /outcomes\[before\.length \+ i\]!/, 'outcomes[i]!'),
  fault(GATHERED, 'what was undone with another is not sent again', /if \(!isUndone\) for/, 'for'),
  fault(
    PG_INTERNALS,
    'the rows of all statements are those of the first',
    /else part\.rows\.push/,
    'else this.statements[0]!.rows.push',
  ),
  fault(
    REMOVE,
    'a delete in one statement is judged by no rule',
    /\n {4}permit\.lookingUp\(\)\.where\(STORED\),/,
    'sql`TRUE`,',
  ),
  {
    ...fault(
      REMOVE,
      'a delete in one statement takes the version that was there',
      /\.\.\.accepted\.map\(\(count\) => hasCount\(collection, count\)\),/,
      '',
    ),
    equivalent: BETWEEN_STATEMENTS,
  },
  fault(
    REMOVE,
    'a delete in one statement changes no record that shows the deleted one',
    /if \(!collection\.countsChanges \|\| isFollowed\(store\.schema, collection\.name\)\) return false;/,
    '',
  ),
  {
    ...fault(
      WRITE_PLAN,
      'an update in one statement takes the version that was there',
      /\.\.\.asked\.counts\.map\([\s\S]*?\),\n {6}\),/,
      '',
    ),
    equivalent: BETWEEN_STATEMENTS,
  },
  fault(SINGLE_STATEMENT, 'every version is the one that is stored', /ifVersion\.includes\(version\) \?/, 'true ?'),
  fault(
    SINGLE_STATEMENT,
    'no version is any version',
    /if \(ifVersion === undefined\) return/,
    'if (!ifVersion?.length) return',
  ),
  fault(REMOVE, 'a delete is judged by no rule', /if \(!locked\.holds\[0\] \|\| !isInTurn\)/, 'if (false)'),
  fault(
    REMOVE,
    'a delete takes any version',
    /if \(ifVersion\?\.includes\(locked\.version\) === false\)/,
    'if (false)',
  ),
  fault(
    REMOVE,
    'the version is told to a caller whom the rules refuse',
    /(if \(!locked\.holds\[0\].*\n)(.*ifVersion\?\.includes.*\n)/,
    '$2$1',
  ),
  fault(
    REMOVE,
    'losing a reference is not a change',
    /if \(relation\.kind === 'belongs_to' && !relation\.isKept\) yield/,
    'if (false) yield',
  ),
  fault(
    REMOVE,
    'losing a member is not a change',
    /if \(relation\.kind === 'many_to_many' && isTouched\(collection\)\) yield/,
    'if (false) yield',
  ),
  fault(
    UPDATE,
    'an update in a transaction takes any version',
    /change\.ifVersion\?\.includes\(version\) === false \?/,
    'false ?',
  ),
  fault(CASCADES, 'a cascade ends with its first step', /waiting\.push\(\.\.\.\(await (\w+\(.*?\))\)\);/, 'await $1;'),
  ...QUERY_FAULTS,
  ...LIST_FAULTS,
  ...PLAN_FAULTS,
  ...FEED_FAULTS,
  ...KEPT_FAULTS,
  ...REFERRING_FAULTS,
  fault(FACTS, 'one branch of an or is enough', /return first\.filter\(.*\);/, 'return first;'),
  fault(FACTS, '@next counts for the stored record', /left\.source\.id !== source \|\| /, ''),
  fault(FACTS, 'an id that is excluded counts as required', / \|\| !isMember\(OPERATORS\[cond\.op\]\)/, ''),
  fault(FACTS, 'the value of another place is taken', /values\[right\.slot\]/, 'values[0]'),
  fault(RESIDUAL, 'another relation counts', /fact\.column\.column === column && /, ''),
  fault(
    ROUTING,
    '@next is proven for the stored record',
    /operand\.scope\.kind === 'record'/,
    "operand.scope.kind !== 'variable'",
  ),
  fault(ROUTING, 'a relation of a related record is proven', /operand\.steps\.length === 0 &&/, ''),
  fault(ROUTING, 'one branch of an or proves a value', /sharedPins\((checked\.items[^;]*)\);/, '($1).flat();'),
  fault(CANONICAL, 'De Morgan is forgotten', /\(checked\.kind === 'and'\) === polarity/, "checked.kind === 'and'"),
  fault(CANONICAL, 'a negated comparison is itself', /polarity \? checked\.op : complement!/, 'checked.op'),
  fault(
    CANONICAL,
    'not of not is not',
    /spelling\(checked\.item, !polarity, names\)/,
    'spelling(checked.item, false, names)',
  ),
  fault(
    SUBSUMES,
    'one branch of an or is enough',
    /if \(b\.kind === 'or'\) return b\.items\.every/,
    "if (b.kind === 'or') return b.items.some",
  ),
];
