/** One policy and one request over all rows of a collection, by every backend. */
import { print } from '../../grammar/printer.ts';
import type { Expr } from '../../grammar/syntax.ts';
import type { Checked, Need, Policy, PolicyRequest, Related, Row } from '../../src/policy/types.ts';
import type { Sql } from '../../src/sql.ts';
import { interpret, type Truth } from '../oracle/interpret.ts';
import type { Compiler } from './compiler.ts';
import { type Setting, SPAN } from './policies.ts';
import type { Random } from './random.ts';
import { relatedOf, type World } from './world.ts';

/** The three forms of a policy whose answers are the partition of the table: true, false, and one of the two. */
export const FORMS = ['it', 'not it', 'it or not it'] as const;
export type Form = (typeof FORMS)[number];

export function formed(form: Form, expr: Expr): Expr {
  const negated: Expr = { kind: 'not', item: expr, span: SPAN };
  switch (form) {
    case 'it':
      return expr;
    case 'not it':
      return negated;
    case 'it or not it':
      // An `or` of its own: chains are flat.
      return { kind: 'or', items: [...(expr.kind === 'or' ? expr.items : [expr]), negated], span: SPAN };
  }
}

export const expectedOf = (form: Form, truth: Truth): boolean => {
  switch (form) {
    case 'it':
      return truth === true;
    case 'not it':
      return truth === false;
    case 'it or not it':
      return truth !== undefined;
  }
};

export interface Compiled {
  readonly form: Form;
  readonly text: string;
  readonly checked: Checked;
  readonly generated: Policy;
  readonly closures: Policy;
}
export interface Arena {
  readonly world: World;
  readonly setting: Setting;
  readonly rows: readonly Row[];
  readonly next: readonly Row[];
  readonly related: Related;
  readonly nextRelated: Related;
}
export type Backend = 'generated' | 'closures' | 'PostgreSQL' | 'PGlite' | 'verdict' | 'needs' | 'explain';
export interface Finding {
  readonly backend: Backend;
  readonly form: Form;
  readonly text: string;
  readonly request: PolicyRequest;
  readonly row: number;
  readonly expected: boolean | undefined;
  readonly error?: unknown;
  readonly sql?: Sql;
}

export function arenaOf(world: World, setting: Setting): Arena {
  return {
    world,
    setting,
    rows: world.data.rows.get(setting.collection)!,
    next: (setting.action === 'create' ? world.data : world.next).rows.get(setting.collection)!,
    related: relatedOf(world.catalog, world.data),
    nextRelated: relatedOf(world.catalog, setting.action === 'create' ? world.data : world.next),
  };
}

export class Rejected extends Error {}

export function compileForm(
  form: Form,
  expr: Expr,
  { setting, compiler }: { setting: Setting; compiler: Compiler },
): Compiled {
  const text = print(formed(form, expr));
  const { expr: parsed, issues } = compiler.parse(text);
  if (parsed === undefined) throw new Rejected(`${issues[0]?.code}: ${issues[0]?.message}\n  ${text}`);
  const { checked, issues: found } = compiler.check(parsed, { ...setting, text });
  if (checked === undefined) throw new Rejected(`${found[0]?.code}: ${found[0]?.message}\n  ${text}`);
  const parts = { checked, text, catalog: setting.catalog, action: setting.action };
  return {
    form,
    text,
    checked,
    generated: compiler.compileChecked(parts),
    closures: compiler.compileChecked(parts, { codegen: false }),
  };
}

export function truths(checked: Checked, request: PolicyRequest, { rows, next, related, nextRelated }: Arena): Truth[] {
  return rows.map((record, i) => interpret(checked, { record, next: next[i]!, related, nextRelated, request }));
}

/** Compares both forms of the predicate with what is expected; undefined when they agree. */
export function testInProcess(
  compiled: Compiled,
  request: PolicyRequest,
  { expected, arena, random }: { expected: readonly boolean[]; arena: Arena; random: Random },
): Finding | undefined {
  const { form, text } = compiled;
  const { rows, next, related, nextRelated } = arena;
  const finding = (backend: Backend, row: number, error?: unknown): Finding => ({
    backend,
    form,
    text,
    request,
    row,
    expected: expected[row],
    ...(error !== undefined && { error }),
  });
  for (const [backend, policy] of [
    ['generated', compiled.generated],
    ['closures', compiled.closures],
  ] as const) {
    let row = 0;
    try {
      const residual = policy.specialise(request);
      for (; row < rows.length; row++) {
        if (residual.test(rows[row]!, related, next[row], nextRelated) !== expected[row]) return finding(backend, row);
      }
      row = 0;
      if (residual.verdict !== 'depends') {
        row = expected.indexOf(residual.verdict !== 'allow');
        if (row >= 0) return finding('verdict', row);
        row = 0;
      }
      // Only what `needs` declares is loaded, so only that may be asked for.
      row = random.below(rows.length);
      const declared = declaredOnly(related, {
        needs: residual.needs.record,
        collection: arena.setting.collection,
        row: rows[row]!,
        arena,
      });
      const nextOnly = declaredOnly(nextRelated, {
        needs: residual.needs.next,
        collection: arena.setting.collection,
        row: next[row]!,
        arena,
      });
      if (residual.test(rows[row]!, declared, next[row], nextOnly) !== expected[row]) return finding('needs', row);
    } catch (error) {
      return finding(backend, row, error);
    }
  }
  return undefined;
}

/** `explain` has three values of its own: they are the interpreter's, for a few of the rows. */
export function testExplanation(
  { form, text, generated }: Compiled,
  request: PolicyRequest,
  { answers, arena, random, compiler }: Explained,
): Finding | undefined {
  const { rows, next, related, nextRelated } = arena;
  for (let i = 0; i < EXPLAINED_ROWS; i++) {
    const row = random.below(rows.length);
    const expected = answers[row] === true;
    const finding: Finding = { backend: 'explain', form, text, request, row, expected };
    try {
      const situation = { policy: generated, request, record: rows[row]!, next: next[row]!, related, nextRelated };
      const { allowed, clause } = compiler.explain(situation);
      if (allowed !== expected || clause.value !== answers[row]) return finding;
    } catch (error) {
      return { ...finding, error };
    }
  }
  return undefined;
}

const EXPLAINED_ROWS = 3;
interface Explained {
  readonly answers: readonly Truth[];
  readonly arena: Arena;
  readonly random: Random;
  readonly compiler: Compiler;
}

interface Loading {
  readonly needs: readonly Need[];
  readonly collection: string;
  readonly row: Row;
  readonly arena: Arena;
}

function declaredOnly(related: Related, loading: Loading): Related {
  const allowed = new Set<string>();
  load(related, loading, allowed);
  const demand = (key: string) => {
    if (!allowed.has(key)) throw new Error(`${key} was asked for and not declared in needs`);
  };
  return {
    one(collection, id) {
      demand(`${collection} ${id}`);
      return related.one(collection, id);
    },
    many(collection, relation, id) {
      demand(`${collection} ${id} ${relation}`);
      return related.many(collection, relation, id);
    },
  };
}

function load(related: Related, { needs, collection, row, arena }: Loading, allowed: Set<string>): void {
  for (const need of needs) {
    const relation = arena.world.catalog.collections.get(collection)!.relations.get(need.relation)!;
    const visit = (found: Row) =>
      load(related, { needs: need.needs, collection: relation.collection, row: found, arena }, allowed);
    if (relation.kind === 'belongs_to') {
      const id = row[relation.name];
      if (typeof id !== 'string') continue;
      allowed.add(`${relation.collection} ${id}`);
      visit(related.one(relation.collection, id)!);
      // A to-many of the record behind is found by its identifier.
    } else {
      allowed.add(`${collection} ${row.id} ${relation.name}`);
      related.many(collection, relation.name, row.id as string).forEach(visit);
    }
  }
}

/** The condition of a residual as it stands in a statement; now and then as it stands under an `or`. */
export function conditionOf({ generated }: Compiled, request: PolicyRequest, inUnion: boolean): Sql {
  const residual = generated.specialise(request);
  return inUnion ? residual.whereInUnion('r') : residual.where('r');
}
