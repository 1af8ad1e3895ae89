/** Texts of the greatest size, honest and hostile, for what the compiler does in a bounded time. */
import { LIMITS } from '../../grammar/limits.ts';

export type LargestText = readonly [what: string, text: string];

/** As many parts as fit in a text of the greatest length, and in the limit on comparisons. */
function filled(part: (i: number) => string, word: string, comparisons = 1): string {
  const parts: string[] = [];
  let length = 0;
  for (let i = 0; (i + 1) * comparisons <= LIMITS.comparisons; i++) {
    length += part(i).length + word.length + 2;
    if (length > LIMITS.bytes) break;
    parts.push(part(i));
  }
  return parts.join(` ${word} `);
}

function nested(open: string, inner: string, close: string): string {
  const levels = LIMITS.levels - 1;
  return open.repeat(levels) + inner + close.repeat(levels);
}

const repeated = (piece: string): string => piece.repeat(Math.floor(LIMITS.bytes / piece.length));

const OWNER = '@record.owner = @request.auth.id';
const MEMBER = 'any(@record.team.memberships as m, m.user = @request.auth.id)';

/** Each is accepted, most of them with as many warnings as are shown. */
export const ACCEPTED: readonly LargestText[] = [
  ['256 comparisons', filled((i) => `@now!=@now-${i}s`, 'or')],
  ['comparisons of fields', filled((i) => `@record.score > ${i}`, 'or')],
  ['excluding bounds', filled((i) => (i % 2 ? `@record.score > ${i}` : `@record.score < -${i}`), 'and')],
  ['negations', filled((i) => `not (@record.score > ${i})`, 'and')],
  ['unknown values of an enum', filled((i) => `@record.status != "x${i}"`, 'and')],
  ['walks', filled((i) => `@record.team.lead.department = "${i}"`, 'or')],
  ['any', filled(() => MEMBER, 'or')],
  ['all, which warns', filled(() => MEMBER.replace('any', 'all'), 'or')],
  ['none of what may be null', filled((i) => `none(@record.team.memberships as m, m.note != "${i}")`, 'and')],
  ['count', filled((i) => `count(@record.team.memberships) > ${i}`, 'or')],
  ['the own relation of the caller', filled(() => 'any(@request.auth.memberships as m, m.team = @record.team)', 'or')],
  ['ancestors', filled(() => 'any(ancestors(@record.team by parent) as t, t.lead = @request.auth.id)', 'or')],
  ['deep parentheses', nested('(', OWNER, ')')],
  ['deep not', nested('not ', OWNER, '')],
  ['deep and or', nested('(', OWNER, ' or @record.pinned)')],
  [
    'deep quantifiers',
    nested('any(@request.auth.memberships as m', 'true', ')').replaceAll(
      /as m/g,
      (() => {
        let i = 0;
        return () => `as m${i++}, `;
      })(),
    ),
  ],
  ['one list', `@record.status in [${filled((i) => `"${i}"`, 'or').replaceAll(' or ', ', ')}]`],
  ['a long comment', `/*${'x'.repeat(LIMITS.bytes - OWNER.length - 5)}*/ ${OWNER}`],
  ['a long string', `@record.title = "${'x'.repeat(LIMITS.bytes - 20)}"`],
];

/** Each is rejected, with as many errors and fixes as are shown, or at once. */
export const REJECTED: readonly LargestText[] = [
  ['misspelt names', filled((i) => `@record.titel = "${i}"`, 'or')],
  ['misspelt names far from any', filled((i) => `@record.zzzzzzzzzzzzzzzzzzzzzzzzzzzz${i} = "a"`, 'or')],
  ['a long name', `@record.${'a'.repeat(4000)} = 1`],
  ['wrong types', filled((i) => `@record.score = "${i}"`, 'or')],
  ['to-many without a quantifier', filled((i) => `@record.tags = "${i}"`, 'or')],
  ['null compared', filled(() => '@record.team = null', 'or')],
  ['operators of other languages', filled((i) => `@record.score == ${i}`, '||')],
  ['words in capitals', filled((i) => `@record.score = ${i}`, 'OR')],
  ['strings without quotes', filled(() => '@record.title = draft', 'or')],
  ['functions of other languages', filled(() => 'exists(@record.tags)', 'or')],
  ['unclosed parentheses', `${'('.repeat(LIMITS.levels)}${OWNER}`],
  ['parentheses too deep', repeated('(')],
  ['closing parentheses', repeated(')')],
  ['clauses that cannot be read', filled(() => '@record.score 1 2', 'or')],
  ['dots', `@record${repeated('.').slice(0, 4000)}`],
  ['an open string', `"${'x'.repeat(4000)}`],
  ['an open comment', `/*${'*'.repeat(4000)}`],
  ['stray signs', repeated('$?#')],
  ['lone signs', repeated('? ')],
  ['curly quotes', filled(() => '@record.title = “a”', 'or')],
  ['escapes that are none', `@record.title = "${'\\q'.repeat(2000)}"`],
  ['malformed numbers', filled(() => '@record.score = 0x10', 'or')],
  ['many elements', `@record.status in [${filled((i) => `${i}`, 'or').replaceAll(' or ', ', ')}]`],
  ['paths that are too long', filled(() => '@record.team.lead.home.lead.home.lead.home = "a"', 'or')],
  ['unknown roles', filled((i) => `@request.auth.roles contains "admn${i}"`, 'or')],
  ['roots that do not exist', filled((i) => `@requst.auth.id = "${i}"`, 'or')],
  ['shadowed variables', filled(() => 'any(@record.tags as t, any(@record.tags as t, true))', 'or')],
];
