/**
 * Resolves a path to the member that it names in the catalog. An unknown name is reported with the nearest
 * known one.
 */
import { overNames } from '../../../grammar/limits.ts';
import type { Name, Path } from '../../../grammar/syntax.ts';
import { elementOf } from '../scalar-types.ts';
import {
  type CatalogBelongsTo,
  type CatalogCollection,
  type CatalogField,
  type CatalogManyToMany,
  type ColumnOperand,
  type HasMany,
  idOf,
  isToMany,
  type RequestOperand,
  type RowScope,
  SESSION_FACTS,
  type ToManyPath,
  type ToOneStep,
  type ValueType,
} from '../types.ts';
import { ofCaller } from '../visit.ts';
import { requestFact } from './fact-paths.ts';
import type {
  BoundElement,
  BoundParameter,
  CheckerPlace,
  CheckIssue,
  Named,
  QueryName,
  RecordStart,
  ToMany,
} from './place.ts';
import {
  findRelation,
  namesOf,
  relationNames,
  reportUnknownName,
  unknownMember,
  unknownVariable,
} from './unknown-names.ts';

const ID_OF_USERS: ValueType = { id: 'users' };
/** The values of a caller, beside the members of `users`. */
export const CALLER: ReadonlyMap<string, ValueType> = new Map<string, ValueType>([
  ['id', ID_OF_USERS],
  ['email', 'string'],
  ['email_verified', 'bool'],
  ['roles', 'string'],
  ...SESSION_FACTS,
]);

export function resolve(path: Path, place: CheckerPlace): Named | undefined {
  if (place.isBody && isOfRecord(path)) return place.report(recordInBody(path));
  switch (path.root) {
    case 'auth':
      return callerField(path, place);
    case 'query':
      return queryName(path, place);
    case 'data':
      return dataField(path, place);
    case 'request':
    case 'now':
      return requestFact(path, place);
    case 'next':
    case 'record':
      return recordPath(path, place);
    case 'variable': {
      const bound = place.variables.get(path.variable!.name);
      if (bound === undefined && place.params !== undefined) return memberPath(path, place);
      if (bound?.kind === 'element') return elementPath(bound, path, place);
      return bound?.kind === 'parameter' ? parameterPath(bound, path, place) : recordPath(path, place);
    }
  }
}

/** An element of a list is a value. */
function elementPath({ unique, type }: BoundElement, path: Path, place: CheckerPlace): ColumnOperand | undefined {
  const [first] = path.steps;
  if (first !== undefined) return place.report(valueWalked(path.variable!, path));
  const scope = { kind: 'variable', name: unique } as const;
  const column = { kind: 'element' } as const;
  return { kind: 'column', scope, collection: '', steps: [], column, type, nullable: false, span: path.span };
}

function valueWalked({ name, span: { end } }: Name, path: Path): CheckIssue {
  const message = `\`${name}\` is a value and has no parts; nothing may follow it`;
  const span = { start: end, end: path.span.end };
  return { code: 'path_not_walked', message, span, fix: { span, replacement: '' } };
}

const isOfRecord = ({ root, span }: Path): boolean =>
  (root === 'record' || root === 'next' || root === 'data') && span.source === undefined;

function recordInBody({ root, span }: Path): CheckIssue {
  const name = root === 'data' ? '@request.data' : `@${root}`;
  const message = `\`${name}\` in a named condition, which names its parameters and the request; pass it as an argument`;
  return { code: 'condition_scope', message, span };
}

function parameterPath(bound: BoundParameter, path: Path, place: CheckerPlace): Named | undefined {
  const { name } = path.variable!;
  const [first] = path.steps;
  if (first === undefined) return { ...bound.operand, span: path.span };
  if (bound.record === undefined) {
    const message = `the parameter \`${name}\` is a value and has no parts; nothing may follow it`;
    return place.report({ code: 'path_not_walked', message, span: path.span });
  }
  // The request holds the id, so the record is not read.
  if (bound.record.scope.kind === 'request' && path.steps.length === 1 && first.name === 'id')
    return { ...bound.operand, span: path.span };
  const excess = overNames(bound.names + path.steps.length, path.span);
  return excess === undefined ? walked(bound.record, path, place) : place.report(excess);
}

// ---------------------------------------------------------------- the request

function oneStep(path: Path, what: string, place: CheckerPlace): Name | undefined {
  const [name, next] = path.steps;
  if (next === undefined) return name;
  const message = `${what} is not walked; nothing may follow \`${name!.name}\``;
  return place.report({ code: 'path_not_walked', message, span: { start: next.span.start - 1, end: path.span.end } });
}

/** The caller's own to-many relations are reached from the caller's id. */
function callerRelation(path: Path, place: CheckerPlace): ToMany | undefined {
  const relation = place.catalog.collections.get('users')?.relations.get(path.steps[0]!.name);
  if (relation === undefined || !isToMany(relation)) return undefined;
  const span = { ...path.span, end: path.steps[0]!.span.end };
  const id = { ...ofCaller('id', span), type: ID_OF_USERS, list: false };
  const scope = { kind: 'request', operand: id } as const;
  return { kind: 'to many', path: { scope, collection: 'users', steps: [], from: 'users', relation, span }, used: 1 };
}

function callerField(path: Path, place: CheckerPlace): RequestOperand | ToMany | undefined {
  const toMany = callerRelation(path, place);
  if (toMany !== undefined) return toMany;
  const name = oneStep(path, '`@request.auth`', place);
  if (name === undefined) return undefined;
  const request = ofCaller(name.name, path.span);
  const own = CALLER.get(name.name);
  if (own !== undefined) return { ...request, type: own, list: name.name === 'roles' };
  const users = place.catalog.collections.get('users');
  const member = heldMember(request, users, place);
  if (member !== undefined) return member;
  const owned = [...(users?.relations.values() ?? [])].filter((each) => each.kind !== 'has_one');
  const names = new Set([...CALLER.keys(), ...(users?.fields.keys() ?? []), ...relationNames(owned)]);
  return reportUnknownName({ name, where: '`@request.auth`', names, of: users }, place);
}

/** A field or belongs_to of a collection, whose value the request holds. */
function heldMember(
  request: Omit<RequestOperand, 'type' | 'list'>,
  collection: CatalogCollection | undefined,
  { catalog }: CheckerPlace,
): RequestOperand | undefined {
  const field = collection?.fields.get(request.name);
  if (field !== undefined) return { ...request, ...requestedField(field) };
  const relation = collection && findRelation(collection, request.name);
  if (relation?.kind !== 'belongs_to') return undefined;
  return { ...request, name: relation.name, type: idOf(catalog, relation.collection), list: false };
}

/** A list of the request is compared by its elements, as the caller's roles are. */
function requestedField({ type }: CatalogField): Pick<RequestOperand, 'type' | 'list'> {
  const element = elementOf(type);
  return { type: element ?? type, list: element !== undefined };
}

function queryName(path: Path, place: CheckerPlace): QueryName | undefined {
  const name = oneStep(path, 'a query parameter', place);
  return name && { kind: 'query', source: 'query', name: name.name, span: path.span };
}

function dataField(path: Path, place: CheckerPlace): RequestOperand | undefined {
  if (place.action !== 'create' && place.action !== 'update') {
    const message = `\`@request.data\` in a rule for ${place.action}; only create and update have a body`;
    return place.report({ code: 'data_misplaced', message, span: path.span });
  }
  const name = oneStep(path, '`@request.data`', place);
  const collection = place.catalog.collections.get(place.collection);
  if (name === undefined || collection === undefined) return undefined;
  const member = heldMember({ ...ofCaller(name.name, path.span), source: 'data' }, collection, place);
  if (member !== undefined) return member;
  const owned = [...collection.relations.values()].filter((each) => each.kind === 'belongs_to');
  const names = [...collection.fields.keys(), ...relationNames(owned)];
  return reportUnknownName({ name, where: `the data of \`${collection.name}\``, names, of: collection }, place);
}

// ---------------------------------------------------------------- records

const startAt = (scope: RowScope, collection: string): RecordStart => ({
  scope,
  collection,
  steps: [],
  at: collection,
  nullable: false,
});

function pathRoot(path: Path, place: CheckerPlace): RecordStart | undefined {
  switch (path.root) {
    case 'record':
      return startAt({ kind: 'record' }, place.collection);
    case 'next':
      return nextOf(path, place);
    default:
      return variableOf(path, place);
  }
}

function nextOf(path: Path, place: CheckerPlace): RecordStart | undefined {
  if (place.action === 'create') return startAt({ kind: 'record' }, place.collection);
  if (place.action === 'update') return startAt({ kind: 'next' }, place.collection);
  const span = { start: path.span.start, end: path.span.start + '@next'.length };
  const fix = { span, replacement: '@record' };
  const message = `\`@next\` in a rule for ${place.action}; only update and create have a resulting record`;
  return place.report({ code: 'next_misplaced', message, span, suggestion: '@record', fix });
}

function variableOf(path: Path, place: CheckerPlace): RecordStart | undefined {
  const variable = path.variable!;
  const bound = place.variables.get(variable.name);
  if (bound?.kind === 'variable') return startAt({ kind: 'variable', name: bound.unique }, bound.collection);
  return unknownVariable(path, place);
}

/** In a filter, a name that is not a variable is a member of the record. */
function memberPath(path: Path, place: CheckerPlace): ColumnOperand | ToMany | undefined {
  const name = path.variable!;
  const steps = [name, ...path.steps];
  const excess = overNames(steps.length, path.span);
  if (excess !== undefined) return place.report(excess);
  const collection = place.catalog.collections.get(place.collection);
  const isKnown = collection !== undefined && namesOf(collection).includes(name.name);
  if (!isKnown) return unknownMember(path, place);
  const found = recordPath({ kind: 'path', root: 'record', steps, span: path.span }, place);
  // The index among the path's own steps, which begin after the name.
  return found?.kind === 'to many' ? { ...found, used: found.used - 1 } : found;
}

function recordPath(path: Path, place: CheckerPlace): ColumnOperand | ToMany | undefined {
  const start = pathRoot(path, place);
  return start && walked(start, path, place);
}

function walked(start: RecordStart, path: Path, place: CheckerPlace): ColumnOperand | ToMany | undefined {
  const walk = new PathResolver(start, path, place);
  for (const [index, step] of path.steps.entries()) {
    const done = walk.take(step, index);
    if (done !== undefined) return done === 'failed' ? undefined : done;
  }
  return walk.identifier();
}

/** Resolves one path, step by step. */
class PathResolver {
  readonly #start: RecordStart;
  readonly #path: Path;
  readonly #place: CheckerPlace;
  readonly #steps: ToOneStep[];
  #at: string;
  #nullable: boolean;

  constructor(start: RecordStart, path: Path, place: CheckerPlace) {
    this.#start = start;
    this.#path = path;
    this.#place = place;
    this.#steps = [...start.steps];
    this.#at = start.at;
    this.#nullable = start.nullable;
  }

  /** The named value, `failed`, or `undefined` while the path continues. */
  take(step: Name, index: number): ColumnOperand | ToMany | 'failed' | undefined {
    const collection = this.#place.catalog.collections.get(this.#at);
    if (collection === undefined) return 'failed';
    const last = index === this.#path.steps.length - 1;
    const field = collection.fields.get(step.name);
    if (step.name === 'id' || field !== undefined)
      return last ? this.#scalar(field) : this.#part(step, index, collection);
    const relation = findRelation(collection, step.name);
    if (relation === undefined) {
      reportUnknownName(
        { name: step, where: `\`${collection.name}\``, names: namesOf(collection), of: collection },
        this.#place,
      );
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
    return this.#column({ kind: 'id' }, idOf(this.#place.catalog, this.#at), false);
  }

  /** @param field undefined: the id */
  #scalar(field: CatalogField | undefined): ColumnOperand {
    return field === undefined
      ? this.identifier()
      : this.#column({ kind: 'field', field }, field.type, !field.required);
  }

  #belongsTo(relation: CatalogBelongsTo): ColumnOperand {
    const type = idOf(this.#place.catalog, relation.collection);
    return this.#column({ kind: 'belongs_to', relation }, type, !relation.required);
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

  #toMany(relation: HasMany | CatalogManyToMany, index: number): ToMany {
    const { scope, collection } = this.#start;
    const span = { ...this.#path.span, end: this.#path.steps[index]!.span.end };
    return {
      kind: 'to many',
      path: { scope, collection, steps: this.#steps, from: this.#at, relation, span },
      used: index + 1,
    };
  }

  /** The rest of the path leads into the value of a json field. */
  #part(step: Name, index: number, collection: CatalogCollection): ColumnOperand | 'failed' {
    const paths = collection.fields.get(step.name)?.paths;
    const rest = this.#path.steps.slice(index + 1);
    const name = rest.map((each) => each.name).join('.');
    const field = paths?.get(name);
    if (field !== undefined) return this.#column({ kind: 'field', field }, field.type, true);
    if (paths === undefined) this.#place.report(valueWalked(step, this.#path));
    else {
      const span = { ...this.#path.span, start: rest[0]!.span.start };
      reportUnknownName(
        { name: { name, span }, where: `\`${step.name}\``, names: paths.keys(), of: { ...collection, fields: paths } },
        this.#place,
      );
    }
    return 'failed';
  }
}

/** True if the relation itself may be null, because a step on the way may be. */
export const mayBeAbsent = (path: ToManyPath): boolean =>
  path.scope.kind === 'request' ||
  (path.relation.kind === 'elements' && !path.relation.field.required) ||
  path.steps.some(({ relation }) => relation.kind === 'has_one' || !relation.required);
