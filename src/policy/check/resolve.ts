/** From a path to what it names in the catalog. Every name that does not exist is reported with the nearest that does. */

import { overNames } from '../../../grammar/limits.ts';
import type { Fix, PolicyIssue } from '../../../grammar/policy-error.ts';
import { nearest } from '../../../grammar/suggest.ts';
import type { Name, Path, Span } from '../../../grammar/syntax.ts';
import type {
  Action,
  BelongsTo,
  Catalog,
  CatalogCollection,
  CatalogRelation,
  CheckedOperand,
  ColumnOperand,
  HasMany,
  ManyToMany,
  RequestOperand,
  Scope,
  ToManyPath,
  ToOneStep,
  ValueType,
} from '../types.ts';

/** What a name at the root of a path stands for. */
export type Bound = BoundVariable | BoundParameter;
interface BoundVariable {
  readonly kind: 'variable';
  /** Unique in the whole expression. */
  readonly unique: string;
  readonly collection: string;
}
/** A parameter of a named condition, with its argument. */
export interface BoundParameter {
  readonly kind: 'parameter';
  /** The argument itself. */
  readonly operand: CheckedOperand;
  /** The record that paths go on from, where the parameter is a record. */
  readonly record?: RecordStart;
  /** How many names the argument has. */
  readonly names: number;
}
/** A record behind zero or more to-one steps, from which a path goes on. */
export interface RecordStart {
  readonly scope: Scope;
  /** The collection of the scope's record. */
  readonly collection: string;
  readonly steps: readonly ToOneStep[];
  /** The collection after the steps. */
  readonly at: string;
  readonly nullable: boolean;
}
/** Where a path stands: what it may name. */
export interface Place {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
  readonly variables: ReadonlyMap<string, Bound>;
  /** In the body of a named condition, which names no record. */
  readonly isBody: boolean;
  fault(fault: Fault): undefined;
}
export type Fault = Omit<PolicyIssue, 'severity'>;

/** A query parameter has no type of its own. */
export interface QueryName {
  readonly kind: 'query';
  readonly name: string;
  readonly span: Span;
}
export type Named = CheckedOperand | QueryName | ToMany;
export interface ToMany {
  readonly kind: 'to many';
  readonly path: ToManyPath;
  /** How many of the steps lead to the relation; fewer than all where the path goes on behind it. */
  readonly used: number;
}

const isToMany = (relation: CatalogRelation): relation is HasMany | ManyToMany =>
  relation.kind === 'has_many' || relation.kind === 'many_to_many';

const ID_OF_USERS: ValueType = { id: 'users' };
const CALLER: ReadonlyMap<string, { readonly type: ValueType; readonly list: boolean }> = new Map([
  ['id', { type: ID_OF_USERS, list: false }],
  ['email', { type: 'string', list: false }],
  ['email_verified', { type: 'bool', list: false }],
  ['roles', { type: 'string', list: true }],
] as const);

export function resolve(path: Path, place: Place): Named | undefined {
  if (place.isBody && isOfRecord(path)) return place.fault(recordInBody(path));
  switch (path.root) {
    case 'auth':
      return callerField(path, place);
    case 'query':
      return queryName(path, place);
    case 'data':
      return dataField(path, place);
    case 'next':
    case 'record':
      return recordPath(path, place);
    case 'variable': {
      const bound = place.variables.get(path.variable!.name);
      return bound?.kind === 'parameter' ? parameterPath(bound, path, place) : recordPath(path, place);
    }
  }
}

const isOfRecord = ({ root, span }: Path): boolean =>
  (root === 'record' || root === 'next' || root === 'data') && span.source === undefined;

function recordInBody({ root, span }: Path): Fault {
  const name = root === 'data' ? '@request.data' : `@${root}`;
  const message = `\`${name}\` in a named condition, which names its parameters and the request; pass it as an argument`;
  return { code: 'condition_scope', message, span };
}

function parameterPath(bound: BoundParameter, path: Path, place: Place): Named | undefined {
  const { name } = path.variable!;
  const [first] = path.steps;
  if (first === undefined) return { ...bound.operand, span: path.span };
  if (bound.record === undefined) {
    const message = `the parameter \`${name}\` is a value and has no parts; nothing may follow it`;
    return place.fault({ code: 'path_not_walked', message, span: path.span });
  }
  // The id that the request holds is at hand, without a look at the record.
  if (bound.record.scope.kind === 'request' && path.steps.length === 1 && first.name === 'id')
    return { ...bound.operand, span: path.span };
  const excess = overNames(bound.names + path.steps.length, path.span);
  return excess === undefined ? walked(bound.record, path, place) : place.fault(excess);
}

// ---------------------------------------------------------------- names that do not exist

interface Unknown {
  readonly name: Name;
  readonly where: string;
  readonly names: Iterable<string>;
  readonly code?: string;
}

function reportUnknownName({ name, where, names, code = 'name_unknown' }: Unknown, place: Place): undefined {
  const known = [...names];
  const near = nearest(name.name, known);
  if (near === undefined) {
    const some = known
      .slice(0, 8)
      .map((each) => `\`${each}\``)
      .join(', ');
    const message = `${where} has no \`${name.name}\`; it has ${some || 'nothing of that kind'}${known.length > 8 ? ', …' : ''}`;
    return place.fault({ code, message, span: name.span });
  }
  const fix: Fix = { span: name.span, replacement: near };
  const message = `${where} has no \`${name.name}\`; did you mean \`${near}\`?`;
  return place.fault({ code, message, span: name.span, suggestion: near, fix });
}

/** Both names of every belongs_to, so that a slip in `owner_id` is answered by `owner_id`. */
function relationNames(relations: Iterable<CatalogRelation>): string[] {
  return [...relations].flatMap((relation) =>
    relation.kind === 'belongs_to' ? [relation.name, `${relation.name}_id`] : [relation.name],
  );
}

const namesOf = (collection: CatalogCollection): string[] => [
  'id',
  ...collection.fields.keys(),
  ...relationNames(collection.relations.values()),
];

export function findRelation(collection: CatalogCollection, name: string): CatalogRelation | undefined {
  const relation = collection.relations.get(name);
  if (relation !== undefined || !name.endsWith('_id')) return relation;
  const aliased = collection.relations.get(name.slice(0, -3));
  return aliased?.kind === 'belongs_to' ? aliased : undefined;
}

// ---------------------------------------------------------------- the request

function oneStep(path: Path, what: string, place: Place): Name | undefined {
  const [name, next] = path.steps;
  if (next === undefined) return name;
  const message = `${what} is not walked; nothing may follow \`${name!.name}\``;
  place.fault({ code: 'path_not_walked', message, span: { start: next.span.start - 1, end: path.span.end } });
  return undefined;
}

/** The caller's own to-many relations are reached from the caller's id. */
function callerRelation(path: Path, place: Place): ToMany | undefined {
  const relation = place.catalog.collections.get('users')?.relations.get(path.steps[0]!.name);
  if (relation === undefined || !isToMany(relation)) return undefined;
  const span = { ...path.span, end: path.steps[0]!.span.end };
  const id = {
    kind: 'request',
    source: 'auth',
    name: 'id',
    type: ID_OF_USERS,
    list: false,
    nullable: true,
    span,
  } as const;
  const scope = { kind: 'request', operand: id } as const;
  return { kind: 'to many', path: { scope, collection: 'users', steps: [], from: 'users', relation, span }, used: 1 };
}

function callerField(path: Path, place: Place): RequestOperand | ToMany | undefined {
  const toMany = callerRelation(path, place);
  if (toMany !== undefined) return toMany;
  const name = oneStep(path, '`@request.auth`', place);
  if (name === undefined) return undefined;
  const request = { kind: 'request', source: 'auth', nullable: true, span: path.span } as const;
  const own = CALLER.get(name.name);
  if (own !== undefined) return { ...request, name: name.name, ...own };
  const users = place.catalog.collections.get('users');
  const field = users?.fields.get(name.name);
  if (field !== undefined) return { ...request, name: field.name, type: field.type, list: false };
  const relation = users && findRelation(users, name.name);
  if (relation?.kind === 'belongs_to')
    return { ...request, name: relation.name, type: { id: relation.collection }, list: false };
  const owned = [...(users?.relations.values() ?? [])].filter((each) => each.kind !== 'has_one');
  const names = new Set([...CALLER.keys(), ...(users?.fields.keys() ?? []), ...relationNames(owned)]);
  reportUnknownName({ name, where: '`@request.auth`', names }, place);
  return undefined;
}

function queryName(path: Path, place: Place): QueryName | undefined {
  const name = oneStep(path, 'a query parameter', place);
  return name && { kind: 'query', name: name.name, span: path.span };
}

function dataField(path: Path, place: Place): RequestOperand | undefined {
  if (place.action !== 'create' && place.action !== 'update') {
    const message = `\`@request.data\` in a rule for ${place.action}; only create and update have a body`;
    place.fault({ code: 'data_misplaced', message, span: path.span });
    return undefined;
  }
  const name = oneStep(path, '`@request.data`', place);
  const collection = place.catalog.collections.get(place.collection);
  if (name === undefined || collection === undefined) return undefined;
  const request = { kind: 'request', source: 'data', list: false, nullable: true, span: path.span } as const;
  const field = collection.fields.get(name.name);
  if (field !== undefined) return { ...request, name: field.name, type: field.type };
  const relation = findRelation(collection, name.name);
  if (relation?.kind === 'belongs_to') return { ...request, name: relation.name, type: { id: relation.collection } };
  const owned = [...collection.relations.values()].filter((each) => each.kind === 'belongs_to');
  reportUnknownName(
    {
      name,
      where: `the data of \`${collection.name}\``,
      names: [...collection.fields.keys(), ...relationNames(owned)],
    },
    place,
  );
  return undefined;
}

// ---------------------------------------------------------------- records

const startAt = (scope: Scope, collection: string): RecordStart => ({
  scope,
  collection,
  steps: [],
  at: collection,
  nullable: false,
});

function startOf(path: Path, place: Place): RecordStart | undefined {
  switch (path.root) {
    case 'record':
      return startAt({ kind: 'record' }, place.collection);
    case 'next':
      return nextOf(path, place);
    default:
      return variableOf(path, place);
  }
}

function nextOf(path: Path, place: Place): RecordStart | undefined {
  if (place.action === 'create') return startAt({ kind: 'record' }, place.collection);
  if (place.action === 'update') return startAt({ kind: 'next' }, place.collection);
  const span = { start: path.span.start, end: path.span.start + '@next'.length };
  const fix = { span, replacement: '@record' };
  const message = `\`@next\` in a rule for ${place.action}; only update and create have a resulting record`;
  place.fault({ code: 'next_misplaced', message, span, suggestion: '@record', fix });
  return undefined;
}

function variableOf(path: Path, place: Place): RecordStart | undefined {
  const variable = path.variable!;
  const bound = place.variables.get(variable.name);
  if (bound?.kind === 'variable') return startAt({ kind: 'variable', name: bound.unique }, bound.collection);
  unknownVariable(path, place);
  return undefined;
}

const ROOT_WORDS: ReadonlyMap<string, string> = new Map([
  ['record', '@record'],
  ['next', '@next'],
  ['now', '@now'],
  ['request', '@request'],
  ['auth', '@request.auth'],
  ['query', '@request.query'],
  ['data', '@request.data'],
]);

/** A bare word is a variable, a field without `@record.`, a root without `@`, or a text without quotes. */
function unknownVariable(path: Path, place: Place): undefined {
  const { name, span } = path.variable!;
  const root = ROOT_WORDS.get(name);
  const suggest = (message: string, replacement: string, at: Span = span): undefined =>
    place.fault({
      code: 'variable_unknown',
      message,
      span: at,
      suggestion: replacement,
      fix: { span: at, replacement },
    });
  if (root !== undefined) return suggest(`unknown name \`${name}\`; did you mean \`${root}\`?`, root);
  const near = nearest(name, place.variables.keys()) ?? innermostWith(path.steps[0]?.name, place);
  if (near !== undefined && path.steps.length > 0)
    return suggest(`unknown name \`${name}\`; did you mean \`${near}\`?`, near);
  const variable = path.steps.length === 0 ? innermostWith(name, place) : undefined;
  if (variable !== undefined)
    return suggest(`unknown name \`${name}\`; did you mean \`${variable}.${name}\`?`, `${variable}.${name}`);
  const collection = place.catalog.collections.get(place.collection);
  const field = collection && (namesOf(collection).find((each) => each === name) ?? nearest(name, namesOf(collection)));
  if (field !== undefined) {
    return suggest(`unknown name \`${name}\`; did you mean \`@record.${field}\`?`, `@record.${field}`);
  }
  if (path.steps.length > 0) {
    const message = `unknown name \`${name}\`; a path begins with \`@record\`, \`@next\`, \`@request\` or the variable of a quantifier`;
    return place.fault({ code: 'variable_unknown', message, span });
  }
  const quoted = JSON.stringify(name);
  return place.fault({
    code: 'text_unquoted',
    message: `unknown name \`${name}\`; string literals need quotes: ${quoted}`,
    span,
    suggestion: quoted,
    fix: { span, replacement: quoted },
  });
}

/** The innermost variable whose record has the name. */
function innermostWith(name: string | undefined, place: Place): string | undefined {
  if (name === undefined) return undefined;
  for (const [variable, bound] of [...place.variables].reverse()) {
    const of = bound.kind === 'variable' ? bound.collection : bound.record?.at;
    const collection = of === undefined ? undefined : place.catalog.collections.get(of);
    if (collection !== undefined && namesOf(collection).includes(name)) return variable;
  }
  return undefined;
}

function recordPath(path: Path, place: Place): ColumnOperand | ToMany | undefined {
  const start = startOf(path, place);
  return start && walked(start, path, place);
}

function walked(start: RecordStart, path: Path, place: Place): ColumnOperand | ToMany | undefined {
  const walk = new PathResolver(start, path, place);
  for (const [index, step] of path.steps.entries()) {
    const done = walk.take(step, index);
    if (done !== undefined) return done === 'failed' ? undefined : done;
  }
  return walk.identifier();
}

/** One path, step by step. */
class PathResolver {
  readonly #start: RecordStart;
  readonly #path: Path;
  readonly #place: Place;
  readonly #steps: ToOneStep[];
  #at: string;
  #nullable: boolean;

  constructor(start: RecordStart, path: Path, place: Place) {
    this.#start = start;
    this.#path = path;
    this.#place = place;
    this.#steps = [...start.steps];
    this.#at = start.at;
    this.#nullable = start.nullable;
  }

  /** What the path names, `failed`, or `undefined` while it goes on. */
  take(step: Name, index: number): ColumnOperand | ToMany | 'failed' | undefined {
    const collection = this.#place.catalog.collections.get(this.#at);
    if (collection === undefined) return 'failed';
    const last = index === this.#path.steps.length - 1;
    const field = collection.fields.get(step.name);
    if (step.name === 'id' || field !== undefined) return last ? this.#scalar(step.name) : this.#scalarWalked(step);
    const relation = findRelation(collection, step.name);
    if (relation === undefined) {
      reportUnknownName({ name: step, where: `\`${collection.name}\``, names: namesOf(collection) }, this.#place);
      return 'failed';
    }
    if (isToMany(relation)) return this.#toMany(relation, index);
    if (last && relation.kind === 'belongs_to') return this.#belongsTo(relation);
    this.#steps.push({ from: this.#at, relation });
    this.#nullable ||= relation.kind === 'has_one' || !relation.required;
    this.#at = relation.collection;
    return undefined;
  }

  /** A bound variable alone, or a has_one at the end. */
  identifier(): ColumnOperand {
    return this.#column({ kind: 'id' }, { id: this.#at }, false);
  }

  #scalar(name: string): ColumnOperand {
    const field = name === 'id' ? undefined : this.#place.catalog.collections.get(this.#at)!.fields.get(name)!;
    return field === undefined
      ? this.identifier()
      : this.#column({ kind: 'field', field }, field.type, !field.required);
  }

  #belongsTo(relation: BelongsTo): ColumnOperand {
    return this.#column({ kind: 'belongs_to', relation }, { id: relation.collection }, !relation.required);
  }

  #column(column: ColumnOperand['column'], type: ValueType, nullable: boolean): ColumnOperand {
    const { scope, collection } = this.#start;
    const span = this.#path.span;
    return {
      kind: 'column',
      scope,
      collection,
      steps: this.#steps,
      column,
      type,
      nullable: this.#nullable || nullable,
      span,
    };
  }

  #toMany(relation: HasMany | ManyToMany, index: number): ToMany {
    const { scope, collection } = this.#start;
    const span = { ...this.#path.span, end: this.#path.steps[index]!.span.end };
    return {
      kind: 'to many',
      path: { scope, collection, steps: this.#steps, from: this.#at, relation, span },
      used: index + 1,
    };
  }

  #scalarWalked(step: Name): 'failed' {
    const message = `\`${step.name}\` is a value and has no parts; nothing may follow it`;
    const span = { start: step.span.end, end: this.#path.span.end };
    this.#place.fault({ code: 'path_not_walked', message, span, fix: { span, replacement: '' } });
    return 'failed';
  }
}

/** Whether the relation itself may be absent: a step on the way is. */
export const mayBeAbsent = (path: ToManyPath): boolean =>
  path.scope.kind === 'request' || path.steps.some(({ relation }) => relation.kind === 'has_one' || !relation.required);
