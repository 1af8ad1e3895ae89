/** Reports unknown names, each with the nearest known one. */
import { type Fix, replacing } from '../../../grammar/policy-error.ts';
import { firstNames, nearest } from '../../../grammar/suggest.ts';
import type { Name, Operand, Path, Span } from '../../../grammar/syntax.ts';
import { describeType } from '../scalar-types.ts';
import {
  type CatalogCollection,
  type CatalogRelation,
  isToMany,
  type KnownName,
  type KnownNames,
  type NamedCondition,
} from '../types.ts';
import type { CheckerPlace, CheckIssue } from './place.ts';

interface Unknown {
  readonly name: Name;
  readonly where: string;
  readonly names: Iterable<string>;
  /** The collection that has the names. */
  readonly of?: CatalogCollection | undefined;
  readonly code?: string;
}

export function reportUnknownName(
  { name, where, names, of, code = 'name_unknown' }: Unknown,
  place: CheckerPlace,
): undefined {
  const known = [...names];
  place.onUnknown?.(name.name, membersNamed(known, of));
  const near = nearest(name.name, known);
  if (near === undefined) {
    const message = `${where} has no \`${name.name}\`; it has ${firstNames(known) || 'nothing of that kind'}${known.length > 8 ? ', …' : ''}`;
    return place.report({ code, message, span: name.span });
  }
  const fix: Fix = { span: name.span, replacement: near };
  const message = `${where} has no \`${name.name}\`; did you mean \`${near}\`?`;
  return place.report({ code, message, span: name.span, suggestion: near, fix });
}

/** Both names of every belongs_to, so that a misspelt `owner_id` gets the suggestion `owner_id`. */
export function relationNames(relations: Iterable<CatalogRelation>): string[] {
  return [...relations].flatMap((relation) =>
    relation.kind === 'belongs_to' ? [relation.name, `${relation.name}_id`] : [relation.name],
  );
}

export const namesOf = (collection: CatalogCollection): string[] => [
  'id',
  ...collection.fields.keys(),
  ...relationNames(collection.relations.values()),
];

/** Finds a belongs_to by either of its names. */
export function findRelation(collection: CatalogCollection, name: string): CatalogRelation | undefined {
  const relation = collection.relations.get(name);
  if (relation !== undefined || !name.endsWith('_id')) return relation;
  const aliased = collection.relations.get(name.slice(0, -3));
  return aliased?.kind === 'belongs_to' ? aliased : undefined;
}

export const membersNamed = (names: Iterable<string>, of: CatalogCollection | undefined): KnownNames =>
  new Map([...names].map((name) => [name, memberNamed(name, of)]));

function memberNamed(name: string, of: CatalogCollection | undefined): KnownName {
  const field = of?.fields.get(name);
  if (field !== undefined)
    return {
      kind: 'field',
      type: `${describeType(field.type)}${field.required ? '' : ' or null'}`,
      ...(field.paths && { walksTo: '' }),
    };
  const relation = of && findRelation(of, name);
  if (of === undefined || relation === undefined)
    return { kind: 'field', type: of && name === 'id' ? describeType({ id: of.name }) : 'list' };
  const { collection } = relation;
  if (isToMany(relation)) return { kind: 'relation', type: `many of \`${collection}\`` };
  return { kind: 'relation', type: `one of \`${collection}\``, walksTo: collection };
}

function variablesOf(place: CheckerPlace): KnownNames {
  const known = [...place.variables].map(([name, bound]): readonly [string, KnownName] => {
    if (bound.kind === 'element') return [name, { kind: 'variable', type: describeType(bound.type) }];
    const walksTo = bound.kind === 'variable' ? bound.collection : bound.record?.at;
    if (walksTo === undefined && bound.kind === 'parameter')
      return [name, { kind: 'parameter', type: describeType(bound.operand.type) }];
    return [name, { kind: bound.kind, type: `one of \`${walksTo}\``, ...(walksTo !== undefined && { walksTo }) }];
  });
  return new Map(known);
}

const ROOT_WORDS: ReadonlyMap<string, string> = new Map([
  ['record', '@record'],
  ['next', '@next'],
  ['now', '@now'],
  ['today', '@today'],
  ['request', '@request'],
  ['auth', '@request.auth'],
  ['query', '@request.query'],
  ['data', '@request.data'],
]);

/** A bare word is a variable, a field without `@record.`, a root without `@`, or a string without quotes. */
export function unknownVariable(path: Path, place: CheckerPlace): undefined {
  const { name, span } = path.variable!;
  place.onUnknown?.(name, variablesOf(place));
  const root = ROOT_WORDS.get(name);
  const suggest = (message: string, replacement: string, at: Span = span): undefined =>
    place.report({ code: 'variable_unknown', message, span: at, ...replacing(at, replacement) });
  if (root !== undefined) return suggest(`unknown name \`${name}\`; did you mean \`${root}\`?`, root);
  const condition =
    path.steps.length === 0 && place.beside === undefined ? place.catalog.conditions?.get(name) : undefined;
  if (condition !== undefined) return place.report(uncalled(condition, span));
  const near = nearest(name, place.variables.keys()) ?? innermostWith(path.steps[0]?.name, place);
  if (near !== undefined && path.steps.length > 0)
    return suggest(`unknown name \`${name}\`; did you mean \`${near}\`?`, near);
  const member = path.steps.length === 0 ? memberOfVariable(name, place) : undefined;
  const field = member ?? memberOfRecord(name, place);
  if (field !== undefined) return suggest(`unknown name \`${name}\`; did you mean \`${field}\`?`, field);
  if (path.steps.length > 0) {
    const message = `unknown name \`${name}\`; a path begins with \`@record\`, \`@next\`, \`@request\` or the variable of a quantifier`;
    return place.report({ code: 'variable_unknown', message, span });
  }
  // With quotes, it would be a constant beside a literal.
  if (isConstantOperand(place.beside, place)) return place.report(nothingNamed(path.variable!, place));
  return place.report(unquoted(path.variable!));
}

/** A literal, or a name that may be one without its quotes. */
function isConstantOperand(operand: Operand | undefined, { variables }: CheckerPlace): boolean {
  if (operand?.kind !== 'path') return operand !== undefined;
  return operand.root === 'variable' && operand.steps.length === 0 && !variables.has(operand.variable!.name);
}

/** A name that is in the record of a variable, or else near one; the innermost variable first. */
function memberOfVariable(name: string, place: CheckerPlace): string | undefined {
  const exact = innermostWith(name, place);
  if (exact !== undefined) return `${exact}.${name}`;
  const collection = place.catalog.collections.get(place.collection);
  if (collection !== undefined && namesOf(collection).includes(name)) return undefined;
  for (const [variable, names] of membersOfVariables(place)) {
    const near = nearest(name, names);
    if (near !== undefined) return `${variable}.${near}`;
  }
  return undefined;
}

function memberOfRecord(name: string, place: CheckerPlace): string | undefined {
  const collection = place.catalog.collections.get(place.collection);
  const names = collection === undefined || place.isBody ? [] : namesOf(collection);
  const found = names.includes(name) ? name : nearest(name, names);
  return found === undefined ? undefined : `@record.${found}`;
}

function nothingNamed({ name, span }: Name, place: CheckerPlace): CheckIssue {
  const [innermost] = membersOfVariables(place);
  const root = place.isBody ? 'a parameter, `@request`' : '`@record`, `@next`, `@request`';
  const starts = `${root} or the variable of a quantifier`;
  const [variable, names] = innermost ?? ['', []];
  const some = names
    .slice(0, 6)
    .map((each) => `\`${variable}.${each}\``)
    .join(', ');
  const expected = innermost === undefined ? `a path begins with ${starts}` : `\`${variable}\` has ${some}`;
  return { code: 'variable_unknown', message: `unknown name \`${name}\`; ${expected}`, span };
}

/** The first name of a path in a filter: a variable, or a member of the record. */
export function unknownMember(path: Path, place: CheckerPlace): undefined {
  const { name, span } = path.variable!;
  const collection = place.catalog.collections.get(place.collection);
  const members = collection === undefined ? [] : namesOf(collection);
  const names = [...place.variables.keys(), ...members];
  place.onUnknown?.(name, new Map([...variablesOf(place), ...membersNamed(members, collection)]));
  const instead = (replacement: string): undefined => {
    const message = `unknown name \`${name}\`; did you mean \`${replacement}\`?`;
    return place.report({ code: 'name_unknown', message, span, ...replacing(span, replacement) });
  };
  if (name === 'now' || name === 'today' || name === 'me') return instead(`@${name}`);
  if (place.params !== undefined && Object.hasOwn(place.params, name)) return instead(`$${name}`);
  const near = nearest(name, names);
  if (near !== undefined) return instead(near);
  if (path.steps.length > 0) {
    return reportUnknownName({ name: path.variable!, where: `\`${place.collection}\``, names, of: collection }, place);
  }
  place.report(unquoted(path.variable!, `\`${place.collection}\` has no \`${name}\``));
}

/** `is_member`, the name of a condition without its arguments. */
function uncalled({ name, parameters }: NamedCondition, span: Span): CheckIssue {
  const message = `\`${name}\` is a named condition; write \`${name}(${parameters.length === 0 ? '' : '…'})\``;
  if (parameters.length > 0) return { code: 'call_expected', message, span };
  return { code: 'call_expected', message, span, suggestion: `${name}()`, fix: { span, replacement: `${name}()` } };
}

function unquoted({ name, span }: Name, found = `unknown name \`${name}\``): CheckIssue {
  const quoted = JSON.stringify(name);
  const message = `${found}; string literals need quotes: ${quoted}`;
  return { code: 'text_unquoted', message, span, ...replacing(span, quoted) };
}

/** The innermost variable whose record has the name. */
function innermostWith(name: string | undefined, place: CheckerPlace): string | undefined {
  if (name === undefined) return undefined;
  return membersOfVariables(place).find(([, names]) => names.includes(name))?.[0];
}

/** Each variable with the names of its record, the innermost first. */
function membersOfVariables(place: CheckerPlace): readonly (readonly [string, readonly string[]])[] {
  return [...place.variables].reverse().flatMap(([variable, bound]) => {
    const of = bound.kind === 'variable' ? bound.collection : bound.kind === 'element' ? undefined : bound.record?.at;
    const collection = of === undefined ? undefined : place.catalog.collections.get(of);
    return collection === undefined ? [] : [[variable, namesOf(collection)] as const];
  });
}
