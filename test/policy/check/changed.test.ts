import { describe, expect, it } from 'vitest';
import { examine } from '../../../src/policy/check/checker.ts';
import { compilePolicy } from '../../../src/policy/compile.ts';
import { NO_RELATED } from '../../../src/policy/types.ts';
import { SAMPLE as catalog } from '../sample-catalog.ts';

const place = { catalog, collection: 'documents', action: 'update' } as const;
const found = (text: string, action: 'update' | 'create' | 'list' = 'update') =>
  examine(text, { ...place, action }).issues.map(({ code, span, fix }) => [
    code,
    text.slice(span.start, span.end),
    ...(fix ? [fix.replacement] : []),
  ]);

describe('changed and changed_only', () => {
  it.each<[string, ...string[]]>([
    ['changed()', 'argument_count', 'changed()'],
    ['changed(@record.ttle)', 'name_unknown', 'ttle', 'title'],
    ['changed(@next.title)', 'change_argument', '@next.title'],
    ['changed(@record.team.name)', 'change_argument', '@record.team.name'],
    ['changed(@record.id)', 'change_argument', '@record.id'],
    ['changed_only(@record.title, @record.updated_at)', 'change_argument', '@record.updated_at'],
    ['changed("title")', 'change_argument', '"title"'],
  ])('the checker reports %s', (text, ...expected) => {
    expect(found(text)).toEqual([expected]);
  });

  it.each(['list', 'create'] as const)('changes belong in rules for update, not for %s', (action) => {
    expect(found('changed(@record.title)', action)).toEqual([['change_misplaced', 'changed(@record.title)']]);
  });

  it('changes reject a has_many, whose records have their own writes', () => {
    const inTeams = examine('changed(@record.memberships)', { ...place, collection: 'teams' });
    expect(inTeams.issues.map(({ code }) => code)).toEqual(['change_argument']);
  });

  it('changes compare partners and members, which a written record names itself', () => {
    const policy = compilePolicy('changed(@record.tags)', place);
    const request = { auth: { id: null, roles: [] }, query: {}, now: '2026-01-01T00:00:00.000000Z' };
    const residual = policy.specialise(request);
    const tags = [{ id: 'a' }, { id: 'b' }];
    const related = {
      one: (_: string, id: string) => tags.find((tag) => tag.id === id),
      many: (_: string, relation: string) => (relation === 'tags' ? tags : []),
    };
    const asked = (ids: readonly string[]) => residual.test({ id: 'd' }, related, { id: 'd', tags: ids });
    expect([asked(['a', 'b']), asked(['b', 'a']), asked(['a']), asked([])]).toEqual([false, false, true, true]);
    expect(policy.namesNext).toBe(true);
    const untouched = compilePolicy('changed_only(@record.title)', place).specialise(request);
    const row = { id: 'd', status: 'draft', pinned: true, owner: 'u', tags: [] };
    const after = { ...row, title: 'b' };
    expect(untouched.test({ ...row, title: 'a' }, NO_RELATED, after)).toBe(true);
    expect(untouched.test({ ...row, title: 'a' }, NO_RELATED, { ...after, score: 1 })).toBe(false);
  });
});
