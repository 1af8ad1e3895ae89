/** Faults of what reads a policy: tokens, trees, names, types, literals, named conditions; and of the gate that joins rules. */
import { type Fault, fault } from './fault.ts';

const TOKENS = 'grammar/tokens.ts';
const READ_TOKENS = 'grammar/read-tokens.ts';
const PARSER = 'grammar/parser.ts';
const CHECKER = 'src/policy/check/checker.ts';
const RESOLVE = 'src/policy/check/resolve.ts';
const UNKNOWN_NAMES = 'src/policy/check/unknown-names.ts';
const COMPARISONS = 'src/policy/check/comparisons.ts';
const LITERALS = 'src/policy/check/literals.ts';
const CALLS = 'src/policy/check/condition-calls.ts';
const CHANGED = 'src/policy/check/changed.ts';
const ACCESS = 'src/policy/access.ts';
const ANCESTORS = 'src/policy/check/ancestors.ts';
const RECORD_START = 'src/policy/check/place.ts';

export const FRONT_END_FAULTS: readonly Fault[] = [
  fault(
    TOKENS,
    '&& is read as or',
    /pattern\(`\$\{keywords\('and'\)\}\|&&\?`\), label: 'and' \}\);\nexport const Or = createToken\(\{ name: 'Or', pattern: pattern\(`\$\{keywords\('or'\)\}\|/,
    "pattern(keywords('and')), label: 'and' });\nexport const Or = createToken({ name: 'Or', pattern: pattern(`${keywords('or')}|&&?|",
  ),
  fault(TOKENS, 'a comment has no star', /\(\?:\[\^\*\]\|\\\*\(\?!\/\)\)\*/, '[^*]*'),
  fault(TOKENS, 'no comment within an operator', /\|\$\{COMMENT\}\)\+`/, ')+`'),
  fault(
    TOKENS,
    'an operator with odd white space is =',
    /READERS\.find\(\(\[, reader\]\) => reader\.test\(image\)\)\?\.\[0\] \?\? '='/,
    "'='",
  ),
  fault(
    ANCESTORS,
    'ancestors follow the first belongs_to that leads back',
    /if \(found !== undefined && isRight\(found\)\) return found;/,
    'if (found !== undefined && isRight(found)) return [...collection.relations.values()].find(isRight);',
  ),
  fault(
    ANCESTORS,
    'ancestors begin at the record',
    /scope, collection, steps, from: at/,
    'scope, collection, steps: [], from: at',
  ),
  fault(
    PARSER,
    'not takes all that follows',
    /const item = this\.SUBRULE\(this\.condition\);/,
    'const item = this.SUBRULE(this.conjunction);',
  ),
  fault(
    PARSER,
    'and is or',
    /this\.ACTION\(\(\) => joined\('and', items\)\)/,
    "this.ACTION(() => joined('or', items))",
  ),
  fault(PARSER, 'is not null is is null', /negated: tail\.op === 'is not null'/, 'negated: false'),
  fault(PARSER, 'the condition of a count is left out', /kind: 'count', path, \.\.\.chosen,/, "kind: 'count', path,"),
  fault(PARSER, 'false is true', /value: token\.image\.toLowerCase\(\) === 'true'/, 'value: true'),
  fault(READ_TOKENS, 'a form feed is a line feed', /f: '\\f'/, "f: '\\n'"),
  fault(
    READ_TOKENS,
    'the first digit of \\u is lost',
    /Number\.parseInt\(code\.slice\(1\), 16\)/,
    'Number.parseInt(code.slice(2), 16)',
  ),
  fault(READ_TOKENS, "\\' keeps its backslash", /"'": "'", /, '"\'": "\\\\\'", '),
  fault(READ_TOKENS, '@next is @record', /\['@next', 'next'\]/, "['@next', 'record']"),
  fault(READ_TOKENS, '@request.data is the query', /\['data', 'data'\]/, "['data', 'query']"),
  fault(READ_TOKENS, 'durations are added', /shift\.sign === '-' \? -1 : 1/, '1'),
  fault(READ_TOKENS, 'a minute is a second', /\{ s: 1, m: 60,/, '{ s: 1, m: 1,'),
  fault(
    READ_TOKENS,
    'numbers are rounded',
    /if \(JSON_NUMBER\.test\(source\)\) return \{ kind: 'number', source, span \}/,
    "if (JSON_NUMBER.test(source)) return { kind: 'number', source: Number.isFinite(Number(source)) ? String(Number(source)) : source, span }",
  ),
  fault(
    UNKNOWN_NAMES,
    '<name>_id is the first belongs_to (C1)',
    /const aliased = collection\.relations\.get\(name\.slice\(0, -3\)\);/,
    "const aliased = [...collection.relations.values()].find(({ kind }) => kind === 'belongs_to');",
  ),
  fault(
    RESOLVE,
    'only the last step makes a path absent',
    /this\.#nullable \|\|= relation/,
    'this.#nullable = relation',
  ),
  fault(
    RESOLVE,
    'a to-many is asked of the record before the steps',
    /path: \{ scope, collection, steps: this\.#steps, from: this\.#at, relation, span \},/,
    'path: { scope, collection, steps: [], from: this.#at, relation, span },',
  ),
  fault(
    RESOLVE,
    'a has_one is never absent',
    /relation\.kind === 'has_one' \|\| !relation\.required/,
    "relation.kind !== 'has_one' && !relation.required",
  ),
  fault(
    RESOLVE,
    'what a caller belongs to is the caller',
    /return \{ \.\.\.request, name: relation\.name, (type: idOf\(.*\), list: false \})/,
    "return { ...request, name: 'id', $1",
  ),
  fault(
    COMPARISONS,
    'contains of a variable asks the variable itself (C4)',
    /const scope = \{ kind: 'variable', name: variable \} as const;/,
    "const scope = path.scope.kind === 'variable' && path.from === collection ? path.scope : ({ kind: 'variable', name: variable } as const);",
  ),
  fault(
    COMPARISONS,
    'the sides are swapped',
    /left: operandOf\(left\), right: operandOf\(right\),/,
    'left: operandOf(right), right: operandOf(left),',
  ),
  fault(
    COMPARISONS,
    'a list of the query is of texts',
    /const type = ownType\(one\) \?\? givenType\(one\) \?\? 'string';/,
    "const type = 'string';",
  ),
  fault(
    COMPARISONS,
    'a query parameter is text',
    /return readAs\(side\.query, against, false\);/,
    "return readAs(side.query, 'string', false);",
  ),
  fault(
    COMPARISONS,
    'contains over a relation is of the whole table',
    /synthetic: true \}/,
    'op: equalityOf(false), synthetic: true }',
  ),
  fault(
    CHECKER,
    'none of an or is not all (C5)',
    /return condition && \{ kind: 'quantified', quantifier, path: relation, variable: unique, condition, span \};/,
    `if (quantifier === 'none' && condition?.kind === 'or')
      return { kind: 'not', item: { kind: 'quantified', quantifier: 'all', path: relation, variable: unique, condition, span }, span };
    return condition && { kind: 'quantified', quantifier, path: relation, variable: unique, condition, span };`,
  ),
  fault(
    CHECKER,
    'is not null of a path is is null',
    /if \(!isList\) return \{ kind: 'is null', negated,/,
    "if (!isList) return { kind: 'is null', negated: false,",
  ),
  fault(
    CHECKER,
    'a count counts all elements',
    /return inner && \{ \.\.\.operand, condition: inner \}/,
    "return inner && { ...operand, condition: { kind: 'const', value: true, span } }",
  ),
  fault(
    CHECKER,
    'a bool as a condition is its opposite',
    /return equal\(named, (.*), span\);/,
    'return { ...equal(named, $1, span), op: equalityOf(false) };',
  ),
  fault(CHECKER, 'elements of one name are one', /this\.#names\.has\(unique\); i\+\+/, 'false; i++'),
  fault(
    CHECKER,
    'arguments are bound backwards',
    /call\.args\[i\]!, place\)/,
    'call.args[parameters.length - 1 - i]!, place)',
  ),
  fault(
    LITERALS,
    'a datetime loses its microseconds (C2)',
    /malformedLiteral\(literal, type, form\) : \{ value, type \};/,
    "malformedLiteral(literal, type, form) : { value: String(value).replace(/\\d{6}Z$/, '000000Z'), type };",
  ),
  fault(
    LITERALS,
    'numbers in a list of more than two are truncated (C3)',
    /else items\.push\(read\);/,
    "else items.push(list.items.length > 2 && typeof read.value === 'number' ? { ...read, value: Math.trunc(read.value) } : read);",
  ),
  fault(COMPARISONS, 'against a float, a number stays exact', /!isWhole\(side\.operand\.type\);/, 'false;'),
  fault(COMPARISONS, 'against an int, a number is rounded', /!isWhole\(side\.operand\.type\);/, 'true;'),
  fault(LITERALS, 'a list beside a float stays exact', /element\.isFloat \? read\.map\(nearestDouble\) : read/, 'read'),
  fault(LITERALS, 'a literal is the nearest double', /\.\.\.\(held \? \{\} : \{ exact: source \}\)/, ''),
  fault(
    LITERALS,
    'every whole number is held',
    /return !Number\.isInteger\(value\) \|\| normalised\(source\)/,
    'return true || normalised(source)',
  ),
  fault(LITERALS, 'an id in capitals keeps them', /: \{ value, type \};/, ': { value: literal.value, type };'),
  fault(
    LITERALS,
    'a list that nothing equals is empty',
    /const kept = held\.length > 0 \? held : items;/,
    'const kept = held;',
  ),
  fault(RECORD_START, 'a parameter starts one step too early', /steps: \[\.\.\.steps, \{ from, relation \}\]/, 'steps'),
  fault(
    CALLS,
    'an argument of the query is text',
    /readAs\(named, parameter\.type, false\)/,
    "readAs(named, 'string', false)",
  ),
  fault(
    CALLS,
    'a literal argument has the type that it looks like',
    /readLiteral\(argument, parameter\.type\)/,
    'readLiteral(argument)',
  ),
  fault(
    CALLS,
    '@now as an argument is not shifted',
    /nowOperand\(argument, place\.catalog\)/,
    'nowOperand({ ...argument, seconds: 0 }, place.catalog)',
  ),
  fault(
    CHANGED,
    'changed_only minds the time of the write',
    /\.filter\(\(\{ name \}\) => !NEVER_SET\.has\(name\)\)/,
    '',
  ),
  fault(
    CHANGED,
    'changed is what is not named',
    /names\.has\(memberName\(member\)\) !== unchanged/,
    'names.has(memberName(member)) === unchanged',
  ),
  fault(
    ACCESS,
    'one rule holds before and another after (A1)',
    /const branches = this\.#rules\.map\(\(\{ residual, namesNext \}\) =>/,
    `if (this.#pure.length === this.#rules.length && this.#rules.length > 1) {
      const before = this.#rules.map(({ residual }) => residual.whereInUnion(alias));
      const after = this.#rules.map(({ residual }) => residual.written.whereInUnion(next));
      return sql\`(\${unionSql(before)} AND \${unionSql(after)})\`;
    }
    const branches = this.#rules.map(({ residual, namesNext }) =>`,
  ),
  fault(
    ACCESS,
    'the first rule that depends is the only one',
    /if \(residual\.verdict === 'depends'\) left\.push/,
    "if (residual.verdict === 'depends' && left.length === 0) left.push",
  ),
  fault(
    ACCESS,
    'an update is judged by the stored record alone',
    /sql`\(\$\{stored\} AND \$\{written\.whereInUnion\(next\)\}\)`/,
    'stored',
  ),
  fault(
    ACCESS,
    'a rule is asked once of a column that changes',
    /changed === undefined \|\| each\.readsAny\(changed\)/,
    'changed === undefined',
  ),
  fault(
    ACCESS,
    'a rule that names @next is asked of the stored record alone',
    /mayDiffer\(residual\) \? next : alias/,
    'alias',
  ),
  fault(ACCESS, 'an action without a rule is allowed', /residual\.verdict \?\? 'deny'/, "residual.verdict ?? 'allow'"),
];
