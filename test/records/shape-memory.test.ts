/** Plans that requests of one shape share: their forms take the values of each request, and never the SQL of other rules. */
import { describe, expect, it } from 'vitest';
import { type AccessRules, decide } from '../../src/policy/access.ts';
import { compilePolicy } from '../../src/policy/compile.ts';
import type { PolicyRequest, Row } from '../../src/policy/types.ts';
import type { AccessContext } from '../../src/records/access-context.ts';
import { type AnsweredPermits, ShapeMemory } from '../../src/records/shape-memory.ts';
import { Place, param, SqlForm, sql } from '../../src/sql.ts';
import { SAMPLE as catalog } from '../policy/sample-catalog.ts';

const RULES = {
  list: ['@record.owner = @request.auth.id', '@record.team = @request.auth.home'],
  read: ['@record.status = "published" or @record.owner = @request.auth.id'],
};
const rulesOf = (texts: readonly string[]): AccessRules['rules'] =>
  texts.map((text) => compilePolicy(text, { catalog, collection: 'documents', action: 'list' }));
const COMPILED = { list: rulesOf(RULES.list), read: rulesOf(RULES.read) };

const [ANN, BOB, TEAM] = [
  '00000000-0000-4000-8000-00000000000a',
  '00000000-0000-4000-8000-00000000000b',
  '00000000-0000-4000-8000-00000000000c',
];

function accessOf(auth: Row): AccessContext {
  const request: PolicyRequest = { auth, query: {}, now: '2026-01-01T00:00:00.000Z' };
  const permit = (_: string, action: string) => decide({ rules: COMPILED[action as keyof typeof COMPILED], request });
  return { permit, member: () => undefined, auth, now: request.now } as unknown as AccessContext;
}

interface Page extends AnsweredPermits {
  readonly limit: number;
}
const statementOf = (access: AccessContext, limit: unknown) => sql`
  ${access.permit('documents', 'list').where('d')} AND ${access.permit('documents', 'read').where('d')}
  LIMIT ${param('int8', limit)}`;
const made = (memory: ShapeMemory<SqlForm<Page>>, access: AccessContext) => {
  let isNew = false;
  const { plan, answers } = memory.planOf('documents', access, (placed) => {
    isNew = true;
    return new SqlForm<Page>(statementOf(placed, new Place(({ limit }: Page) => limit)));
  });
  return { isNew, statement: plan.fill({ answers, limit: 7 }) };
};

describe('a memory of shapes', () => {
  it('a form takes the values of each request', () => {
    const memory = new ShapeMemory<SqlForm<Page>>(({ text }) => text.length);
    for (const [i, auth] of [
      { id: ANN, home: TEAM },
      { id: BOB, home: TEAM },
      { id: BOB, home: ANN },
    ].entries()) {
      const { isNew, statement } = made(memory, accessOf(auth));
      const fresh = statementOf(accessOf(auth), 7);
      expect([isNew, statement.text, statement.params]).toEqual([i === 0, fresh.text, fresh.params]);
    }
  });

  it('a memory makes a plan of its own for callers whose rules give other SQL', () => {
    const memory = new ShapeMemory<SqlForm<Page>>(({ text }) => text.length);
    const callers: readonly (readonly [auth: Row, isNew: boolean])[] = [
      [{ id: ANN, home: TEAM }, true],
      [{ id: ANN }, true],
      [{ id: BOB }, false],
      [{ id: BOB, home: TEAM }, false],
    ];
    for (const [auth, isNew] of callers) {
      const found = made(memory, accessOf(auth));
      const fresh = statementOf(accessOf(auth), 7);
      expect([found.isNew, found.statement.text, found.statement.values]).toEqual([isNew, fresh.text, fresh.values]);
    }
  });

  it('a plan reads neither the caller nor the time, and asks nothing once it is made', () => {
    const memory = new ShapeMemory<AccessContext>(() => 0);
    const access = accessOf({ id: ANN });
    for (const name of ['auth', 'now'] as const)
      expect(() => memory.planOf(name, access, (placed) => ({ ...placed, id: placed[name] }))).toThrow(
        'a plan serves all',
      );
    const { plan } = memory.planOf('documents', access, (placed) => placed);
    expect(() => plan.permit('documents', 'list')).toThrow('only while it is made');
  });

  it('a permit with places has no values, so that nothing is decided by them', () => {
    const memory = new ShapeMemory<boolean>(() => 0);
    const pinned = (placed: AccessContext) => placed.permit('documents', 'list').pinned('owner_id') !== undefined;
    expect(() => memory.planOf('documents', accessOf({ id: ANN, home: TEAM }), pinned)).toThrow('has no values');
  });

  it('a memory of long texts drops its plans, and makes them again', () => {
    const memory = new ShapeMemory<number>((length) => length);
    const access = accessOf({ id: ANN });
    let made = 0;
    const planOf = (key: string, length: number) => memory.planOf(key, access, () => ++made && length).plan;
    const MIB = 1024 * 1024;
    for (const key of ['a', 'b', 'a', 'b']) expect(planOf(key, MIB)).toBe(MIB);
    expect(made).toBe(2);
    // Beyond its room, the memory keeps the latest plan alone.
    for (const key of ['c', 'c']) expect(planOf(key, 3 * MIB)).toBe(3 * MIB);
    expect(made).toBe(3);
    planOf('a', MIB);
    planOf('c', MIB);
    expect(made).toBe(4);
  });
});
