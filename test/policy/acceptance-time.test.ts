/** The time that the checker takes for the greatest texts that it accepts. The contract says 5 ms. */
import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../grammar/limits.ts';
import { examine } from '../../src/policy/check/checker.ts';
import { withProvenFixes } from '../../src/policy/check/proven-fixes.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

/** As many parts as fit in a text of the greatest length, and in the limit on comparisons. */
function filled(part: (i: number) => string, word: 'and' | 'or', comparisons = 1): string {
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

const OWNER = '@record.owner = @request.auth.id';
const MEMBER = 'any(@record.team.memberships as m, m.user = @request.auth.id)';

/** Each is accepted, most of them with as many warnings as are shown. */
const TEXTS: readonly (readonly [what: string, text: string])[] = [
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
  ['one list', `@record.status in [${filled((i) => `"${i}"`, 'or').replaceAll(' or ', ', ')}]`],
  ['a long comment', `/*${'x'.repeat(LIMITS.bytes - OWNER.length - 5)}*/ ${OWNER}`],
  ['a long string', `@record.title = "${'x'.repeat(LIMITS.bytes - 20)}"`],
];

const milliseconds = (text: string): number => {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 8; i++) {
    const start = performance.now();
    examine(text, { catalog, collection: 'documents', action: 'list' });
    least = Math.min(least, performance.now() - start);
  }
  return least;
};

describe('a text of the greatest size is checked in a few milliseconds', () => {
  it.each(TEXTS)('%s', (_what, text) => {
    const { checked } = examine(text, { catalog, collection: 'documents', action: 'list' });
    expect(checked).toBeDefined();
    expect(text.length).toBeLessThanOrEqual(LIMITS.bytes);
    const took = milliseconds(text);
    // Three times the contract: the processor is shared by the whole run.
    expect(took).toBeLessThan(15);
  });
});

it.each([
  [LIMITS.bytes, 1],
  [LIMITS.bytes / 2, 2],
  [100, 6],
])('of a text of %i characters, %i fixes are tried', (length, expected) => {
  const span = { start: 0, end: 1 };
  const issue = { severity: 'warning', code: 'x', message: 'x', span, fix: { span, replacement: 'y' } } as const;
  let tried = 0;
  const fixed = withProvenFixes([issue, issue, issue, issue, issue, issue], 'x'.repeat(length), () => {
    tried++;
    return [];
  });
  expect([tried, fixed.filter(({ fix }) => fix !== undefined).length]).toEqual([expected, expected]);
});
