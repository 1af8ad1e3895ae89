/** Decides a policy and a request over all rows of a collection, by every backend. */
import type { Expr } from '../../../grammar/syntax.ts';
import type {
  Catalog,
  CatalogCollection,
  Checked,
  NamedCondition,
  Need,
  Policy,
  PolicyRequest,
  Related,
  Residual,
  Row,
} from '../../../src/policy/types.ts';
import type { Sql } from '../../../src/sql.ts';
import { relatedOf } from '../../oracle/database.ts';
import { interpret, type Truth } from '../../oracle/interpret.ts';
import { Misfit, meaningOf } from '../../oracle/meaning.ts';
import type { Random } from '../random.ts';
import type { Compiler } from './compiler.ts';
import { type DisguisedCondition, disguise } from './disguise.ts';
import { FrontEndFault } from './front-end-fault.ts';
import { type PinBackend, type PinCounts, provenIn, testPins } from './pins.ts';
import { type Setting, SPAN } from './policies.ts';
import { differenceOfMeanings, differenceOfTrees } from './same-tree.ts';
import { spell } from './speller.ts';
import type { World } from './world.ts';

/** The three forms of a policy whose answers are the partition of the table: true, false, and one of the two. */
export const FORMS = ['it', 'not it', 'it or not it'] as const;
export type Form = (typeof FORMS)[number];

function formed(form: Form, expr: Expr): Expr {
  const negated: Expr = { kind: 'not', item: expr, span: SPAN };
  switch (form) {
    case 'it':
      return expr;
    case 'not it':
      return negated;
    case 'it or not it':
      // A separate `or`: chains are flat.
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
  /** The verdicts by the definition, from the tree that the fuzz made. */
  readonly meant: Checked;
  readonly generated: Policy;
  readonly closures: Policy;
  /** The belongs_tos of which the policy is proven to require one value. */
  readonly proven: ReadonlySet<string>;
}
/** The rows that a policy is asked of: what a request reads, or what a write makes of them. */
export interface View {
  readonly name: 'stored' | 'stored and written' | 'written';
  readonly rows: readonly Row[];
  /** `rows` are written ones: of a create, or of the "after" half of an update. */
  readonly isWritten: boolean;
  /** The results of the updates, for policies that name `@next`. */
  readonly next?: readonly Row[];
  /** The source of a statement: `r`, and `n` beside it. */
  readonly from: string;
}
export interface Arena {
  readonly world: World;
  readonly setting: Setting;
  readonly related: Related;
}
type Backend = 'front end' | 'generated' | 'closures' | 'PostgreSQL' | 'PGlite' | 'verdict' | 'needs' | 'explain';
export interface Finding {
  readonly backend: Backend | PinBackend;
  readonly form: Form;
  readonly text: string;
  readonly request: PolicyRequest;
  readonly view: View;
  readonly row: number;
  readonly expected: boolean | undefined;
  readonly error?: unknown;
  readonly sql?: Sql;
}

export function arenaOf(world: World, setting: Setting): Arena {
  return { world, setting, related: relatedOf(world.catalog, world.data) };
}

export const writtenTable = (collection: string, action: 'create' | 'update'): string => `${collection}_${action}`;

/** The stored rows with their bits as `r`, whose references are ids. */
export function storedRows(own: CatalogCollection, { rowsOf }: Pick<Compiler, 'rowsOf'>): string {
  const key = own.key?.column ?? 'id';
  const read = rowsOf(own).text;
  return read.startsWith('(')
    ? `(SELECT y.*, s._bit FROM ${read} AS y JOIN "${own.table}" AS s ON s."${key}" = y."${key}") AS r`
    : `${read} AS r`;
}

/** An update is asked twice, of the stored and of the resulting record, unless its policy names both. */
export function viewsOf({ world, setting }: Arena, namesNext: boolean, compiler: Compiler): readonly View[] {
  const { collection, action, catalog } = setting;
  const rows = world.data.rows.get(collection)!;
  const own = catalog.collections.get(collection)!;
  const key = own.key?.column ?? 'id';
  const table = storedRows(own, compiler);
  const stored: View = { name: 'stored', rows, isWritten: false, from: table };
  const written = (rows: readonly Row[], of: 'create' | 'update'): View => {
    return { name: 'written', rows, isWritten: true, from: `"${writtenTable(collection, of)}" AS r` };
  };
  if (action === 'create') return [written(world.created.get(collection)!, 'create')];
  if (action !== 'update') return [stored];
  const next = world.updated.get(collection)!;
  if (!namesNext) return [stored, written(next, 'update')];
  const from = `${table} JOIN "${writtenTable(collection, 'update')}" AS n ON n.${key} = r.${key}`;
  return [{ name: 'stored and written', rows, isWritten: false, next, from }];
}

/** The residual to be asked of the rows of a view. */
function residualFor(policy: Policy, request: PolicyRequest, { isWritten }: View, { action }: Setting): Residual {
  const residual = policy.specialise(request);
  return isWritten && action === 'update' ? residual.written : residual;
}

/** The policy is refused, and rightly so. */
export class Rejected extends Error {}

interface Making {
  readonly setting: Setting;
  readonly compiler: Compiler;
  /** The generator of the spelling. */
  readonly random: Random;
}

/**
 * Makes the policy of a tree of the fuzz, spelt in a random way. Throws what is wrong with the front end: a text that is read as another tree, or that is
 * refused although it means something.
 */
export function compileForm(form: Form, expr: Expr, { setting, compiler, random }: Making): Compiled {
  const whole = formed(form, expr);
  const meant = meaningOrMisfit(whole, setting);
  const { expr: made, conditions } =
    meant instanceof Misfit ? { expr: whole, conditions: [] } : disguise(whole, setting, random);
  const texts: string[] = [];
  const write = (tree: Expr): string => {
    const text = spelt(tree, random);
    texts.push(text);
    return text;
  };
  const catalog = withConditions(conditions, { setting, compiler, write });
  const text = write(made);
  const read = readAs(made, text, compiler);
  const { checked, issues } = compiler.checkExpr(read, { ...setting, catalog, text });
  if (meant instanceof Misfit) {
    if (checked === undefined) throw new Rejected(`${issues[0]?.code}: ${issues[0]?.message}\n  ${text}`);
    throw new FrontEndFault(`accepted, although it means nothing (${meant.message})`, texts);
  }
  if (checked === undefined) throw new FrontEndFault(`refused (${issues[0]?.code}: ${issues[0]?.message})`, texts);
  const difference = differenceOfMeanings(meant, checked);
  if (difference !== undefined) throw new FrontEndFault(difference, texts);
  const parts = { checked, text, catalog, action: setting.action };
  return {
    form,
    text: texts.join('\n              '),
    meant,
    generated: compiler.compileChecked(parts),
    closures: compiler.compileChecked(parts, { codegen: false }),
    proven: provenIn(checked, setting, compiler),
  };
}

function meaningOrMisfit(expr: Expr, setting: Setting): Checked | Misfit {
  try {
    return meaningOf(expr, setting);
  } catch (error) {
    if (error instanceof Misfit) return error;
    throw error;
  }
}

/** A policy may have 4 KiB. */
const MOST_BYTES = 4096;

function spelt(expr: Expr, random: Random): string {
  const text = spell(expr, random);
  return Buffer.byteLength(text) <= MOST_BYTES ? text : spell(expr, random, true);
}

function readAs(made: Expr, text: string, { parse }: Compiler): Expr {
  const { expr, issues } = parse(text);
  if (expr === undefined) throw new FrontEndFault(`not read (${issues[0]?.code}: ${issues[0]?.message})`, [text]);
  const difference = differenceOfTrees(made, expr);
  if (difference !== undefined) throw new FrontEndFault(difference, [text]);
  return expr;
}

interface Declaring {
  readonly setting: Setting;
  readonly compiler: Compiler;
  write(expr: Expr): string;
}

/** The catalog with conditions that are declared as a schema file declares them. */
function withConditions(declared: readonly DisguisedCondition[], { setting, compiler, write }: Declaring): Catalog {
  const conditions = new Map<string, NamedCondition>();
  const catalog: Catalog = { ...setting.catalog, conditions };
  for (const { name, parameters, expr } of declared) {
    const list = parameters.map((each) => `${each.name}: ${typeof each.type === 'object' ? each.type.id : each.type}`);
    const head = compiler.readHead(`${name}(${list.join(', ')})`, catalog);
    const text = write(expr);
    if ('code' in head) throw new FrontEndFault(`a condition is refused (${head.code}: ${head.message})`, [name]);
    const read = readAs(expr, text, compiler);
    const place = { catalog, collection: '', action: 'list', text, parameters: head.parameters } as const;
    const { checked, issues } = compiler.checkExpr(read, place);
    if (checked === undefined) {
      const refusal = `the body of ${name} is refused (${issues[0]?.code}: ${issues[0]?.message})`;
      throw new FrontEndFault(refusal, [`${name}(${list.join(', ')}): ${text}`]);
    }
    conditions.set(name, compiler.namedCondition(head, text, catalog));
  }
  return catalog;
}

export function truths(meant: Checked, request: PolicyRequest, { related }: Arena, view: View): Truth[] {
  const { rows, next, isWritten } = view;
  return rows.map((record, i) =>
    interpret(meant, { record, isWritten, ...(next && { next: next[i]! }), related, request }),
  );
}

interface Asking {
  readonly expected: readonly boolean[];
  readonly arena: Arena;
  readonly view: View;
  readonly random: Random;
  readonly counts: PinCounts;
}

/** Compares both forms of the predicate with what is expected; undefined when they agree. */
export function testInProcess(compiled: Compiled, request: PolicyRequest, asking: Asking): Finding | undefined {
  const { form, text } = compiled;
  const { expected, arena, view, random, counts } = asking;
  const { rows, next } = view;
  const { related } = arena;
  const finding = (backend: Finding['backend'], row: number, error?: unknown): Finding => ({
    backend,
    form,
    text,
    request,
    view,
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
      const residual = residualFor(policy, request, view, arena.setting);
      for (; row < rows.length; row++) {
        if (residual.test(rows[row]!, related, next?.[row]) !== expected[row]) return finding(backend, row);
      }
      row = 0;
      if (residual.verdict !== 'depends') {
        row = expected.indexOf(residual.verdict !== 'allow');
        if (row >= 0) return finding('verdict', row);
        row = 0;
      }
      // Only what `needs` declares is loaded, so only that may be asked for.
      row = random.below(rows.length);
      const { record, next: ofNext, requested } = residual.needs;
      const roots = [
        { needs: record, row: rows[row]!, isWritten: view.isWritten },
        ...(next === undefined ? [] : [{ needs: ofNext, row: next[row]!, isWritten: true }]),
      ];
      const declared = declaredOnly(
        related,
        [
          ...roots.map((root) => ({ ...root, collection: arena.setting.collection, arena })),
          ...requested.map(({ collection, id, needs }) => {
            const row = related.one(collection, id) ?? { id };
            return { needs, collection, row, isWritten: false, arena };
          }),
        ],
        requested.filter(({ isRead }) => isRead).map(({ collection, id }) => `${collection} ${id}`),
      );
      if (residual.test(rows[row]!, declared, next?.[row]) !== expected[row]) return finding('needs', row);
      const { proven } = compiled;
      const pinned = testPins({ setting: arena.setting, proven, residual, rows, expected, counts });
      if (pinned) return finding(pinned.backend, pinned.row);
    } catch (error) {
      return finding(backend, row, error);
    }
  }
  return undefined;
}

/** `explain` evaluates three values by itself: they must be the interpreter's, for a few of the rows. */
export function testExplanation(
  { form, text, generated }: Compiled,
  request: PolicyRequest,
  { answers, arena, view, random, compiler }: Explained,
): Finding | undefined {
  const { related } = arena;
  const { rows, next, isWritten } = view;
  for (let i = 0; i < EXPLAINED_ROWS; i++) {
    const row = random.below(rows.length);
    const expected = answers[row] === true;
    const finding: Finding = { backend: 'explain', form, text, request, view, row, expected };
    try {
      const written = next === undefined ? {} : { next: next[row]! };
      const situation = { policy: generated, request, record: rows[row]!, isWritten, ...written, related };
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
  readonly view: View;
  readonly random: Random;
  readonly compiler: Compiler;
}

interface Loading {
  readonly needs: readonly Need[];
  readonly collection: string;
  readonly row: Row;
  readonly isWritten: boolean;
  readonly arena: Arena;
}

function declaredOnly(related: Related, roots: readonly Loading[], read: readonly string[]): Related {
  const allowed = new Set<string>(read);
  for (const root of roots) load(related, root, allowed);
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

function load(related: Related, { needs, collection, row, isWritten, arena }: Loading, allowed: Set<string>): void {
  for (const need of needs) {
    const relation = arena.world.catalog.collections.get(collection)!.relations.get(need.relation)!;
    const visit = (found: Row) => {
      const next = { needs: need.needs, collection: relation.collection, row: found, isWritten: false, arena };
      load(related, next, allowed);
    };
    if (need.isFollowed) {
      for (let at: Row | undefined = row, n = 1; at !== undefined && n <= 32; n++) {
        allowed.add(`${collection} ${at.id}`);
        load(related, { needs: need.needs, collection, row: at, isWritten: false, arena }, allowed);
        const above: unknown = at[relation.name];
        if (above != null) allowed.add(`${collection} ${above}`);
        at = above == null ? undefined : related.one(collection, above as string);
      }
      continue;
    }
    if (relation.kind === 'belongs_to' || (isWritten && relation.kind !== 'has_many')) {
      // A written record holds its partner's id, and the list of its members' ids.
      for (const id of [row[relation.name]].flat()) {
        if (id == null) continue;
        allowed.add(`${relation.collection} ${id}`);
        // A gone record has its id left, by which others refer to it.
        visit(related.one(relation.collection, id as string) ?? { id });
      }
      // A to-many of the record behind is found by its identifier.
    } else {
      allowed.add(`${collection} ${row.id} ${relation.name}`);
      related.many(collection, relation.name, row.id as string).forEach(visit);
    }
  }
}

interface Conditioned {
  readonly request: PolicyRequest;
  readonly view: View;
  readonly setting: Setting;
  readonly inUnion: boolean;
  /** Related rows are looked up, where the action has no resulting record. */
  readonly looksUp: boolean;
}

/** Rows that refer to the caller are looked up too. */
const NONE_IS_FEW = (): boolean => false;
const ALL_ARE_HASHED = (): boolean => true;

/** The condition of a residual as printed in a statement, sometimes under an `or`, sometimes without lists of keys. */
export function conditionOf({ generated }: Compiled, conditioned: Conditioned): Sql {
  const { request, view, setting, inUnion, looksUp } = conditioned;
  const residual = residualFor(generated, request, view, setting);
  const isOfStored = setting.action === 'list' || setting.action === 'read' || setting.action === 'delete';
  if (looksUp && isOfStored && !inUnion) return residual.lookingUp([], NONE_IS_FEW).where('r');
  // A list may read all records
  const listing = setting.action === 'list' ? ([NONE_IS_FEW, ALL_ARE_HASHED] as const) : [];
  if (looksUp && isOfStored) return residual.lookingUp([], ...listing).where('r');
  return inUnion ? residual.whereInUnion('r', 'n') : residual.where('r', 'n');
}
