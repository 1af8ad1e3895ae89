/** `bylaw/policy`: what the package promises to those who use policies without the service. */
import { describe, expect, test as it } from 'vitest';
import {
  check,
  compile,
  complete,
  format,
  PolicyError,
  SchemaError,
  specialise,
  test,
  where,
} from '../../src/exports/policy.ts';
import { ADA, BEN, cases, place, TEAM } from './policy-cases.ts';

describe('a test in memory', () => {
  for (const codegen of [true, false]) {
    it.each(cases)(`%s over %j under %j is %s (codegen: ${codegen})`, (text, record, request, expected) => {
      expect(test(compile(text, { ...place, codegen }), { record: record as Record<string, unknown>, request })).toBe(
        expected,
      );
    });
  }

  it('`test` evaluates the resulting record of an update', () => {
    const policy = compile('@next.owner = @record.owner', { ...place, action: 'update' });
    expect(test(policy, { record: { owner: ADA }, next: { owner: BEN } })).toBe(false);
    expect(test(policy, { record: { owner: ADA } })).toBe(true);
  });

  it('`test` rejects values of another type, and a related record that has only an id', () => {
    const named = compile('@record.team.name = "x"', place);
    expect(() => test(named, { record: { team: TEAM } })).toThrow('/team: the policy reads this record of teams');
    const elements = compile('none(@record.tags as t, t.name = "a")', place);
    expect(() => test(elements, { record: { tags: [TEAM] } })).toThrow('/tags/0: the policy reads this record of tags');
    expect(test(elements, { record: { tags: [{ id: TEAM, name: 'b' }] } })).toBe(true);
    const members = compile('none(@record.team.memberships as m, m.role = "a")', place);
    expect(() => test(members, { record: { team: TEAM } })).toThrow('/team: the policy reads this record of teams');
    const own = compile('none(@request.auth.memberships as m, m.role = "a")', place);
    expect(() => test(own, { record: {}, request: { auth: { id: ADA } } })).toThrow(
      'request.auth.memberships: the policy reads these records of the caller; give them, or an empty list',
    );
    expect(() => test(compile('@record.order = 5', place), { record: { order: '5' } })).toThrow(
      '/order: expected a whole number, found "5"',
    );
    expect(() => test(named, { record: { score: '4' } })).toThrow('/score: expected int, found "4"');
    expect(() => test(named, { record: { owner: 'ada' } })).toThrow('/owner: expected a UUID, found "ada"');
  });
});

describe('a SQL condition', () => {
  it('`where` gives a condition with typed parameters', () => {
    const policy = compile('@record.status = "published" or @record.owner = @request.auth.id', place);
    expect(where(policy, { request: { auth: { id: ADA } } })).toEqual({
      sql: `("t"."status" = 'published'::text OR "t"."owner_id" = $1::uuid)`,
      params: [ADA],
    });
    expect(where(policy, { alias: 'd' }).sql).toBe(`"d"."status" = 'published'::text`);
  });

  it('`specialise` returns the decision by the request alone', () => {
    const policy = compile('@request.auth.roles contains "admin" and true', place);
    expect(specialise(policy, { request: { auth: { id: ADA, roles: ['admin'] } } }).verdict).toBe('allow');
    expect(specialise(policy, {}).verdict).toBe('deny');
  });

  it('`where` rejects a policy about the resulting record', () => {
    const policy = compile('@next.score > @record.score', { ...place, action: 'update' });
    expect(() => where(policy)).toThrow(/@next/);
  });
});

describe('texts and schemas', () => {
  it('a schema may be the parsed content of its file', () => {
    const object = { collections: { notes: { fields: { text: 'string' } } } };
    const policy = compile('@record.text = "x"', { schema: object, collection: 'notes', action: 'read' });
    expect(test(policy, { record: { text: 'x' } })).toBe(true);
  });

  it('`check` reports every error with its place, and `format` prints the canonical form', () => {
    const issues = check('@record.ownr = 1 &&\n@record.status = 2', place);
    expect(issues.map(({ code, line, column }) => [code, line, column])).toEqual([
      ['name_unknown', 1, 9],
      ['type_mismatch', 2, 18],
    ]);
    expect(format('@record.a="x"&&!@record.b')).toBe('@record.a = "x" and not @record.b');
  });

  it('a faulty text, schema or collection throws an error that names it', () => {
    const error = (work: () => unknown): unknown => {
      try {
        return work();
      } catch (error) {
        return error;
      }
    };
    expect(error(() => compile('@record.ownr = 1', place))).toBeInstanceOf(PolicyError);
    expect((error(() => compile('@record.ownr = 1', place)) as PolicyError).issues[0]).toMatchObject({
      code: 'name_unknown',
    });
    const all = error(() => compile('@record.ownr = 1 and @record.status = 2 &&', place)) as PolicyError;
    expect(all.issues.map(({ code }) => code)).toEqual(['name_unknown', 'type_mismatch', 'operand_expected']);
    expect(
      error(() => compile('true', { ...place, schema: 'collections: { a: { fields: { x: strng } } }' })),
    ).toBeInstanceOf(SchemaError);
    expect(() => compile('true', { ...place, collection: 'docs' })).toThrow(
      'unknown collection "docs"; there are users, orders, places, teams',
    );
  });
});

describe('complete', () => {
  it('`complete` offers the keys of a list, and keys that the text names', () => {
    const text = '@record.status = @request.query.';
    const keysFor = (action: 'list' | 'read'): readonly string[] =>
      complete(text, text.length, { ...place, action }).map((each) => each.text);
    expect(keysFor('list')).toEqual(expect.arrayContaining(['id', 'status', 'owner', 'owner_id', 'tags_any']));
    expect(keysFor('read')).toEqual([]);
  });
  it('`complete` throws for a schema with errors and for an unknown collection, as `compile` does', () => {
    expect(() => complete('', 0, { ...place, collection: 'nowhere' })).toThrow(TypeError);
    expect(() => complete('', 0, { ...place, schema: 'collections: 1' })).toThrow(SchemaError);
  });
});
