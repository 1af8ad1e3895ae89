/** Reports unknown names, each with the nearest known one. */
import type { Fix } from '../../../grammar/policy-error.ts';
import { nearest } from '../../../grammar/suggest.ts';
import type { Name, Operand, Path, Span } from '../../../grammar/syntax.ts';
import type { CatalogCollection, CatalogRelation } from '../types.ts';
import type { CheckIssue, Place } from './place.ts';

interface Unknown {
  readonly name: Name;
  readonly where: string;
  readonly names: Iterable<string>;
  readonly code?: string;
}

export function reportUnknownName({ name, where, names, code = 'name_unknown' }: Unknown, place: Place): undefined {
  const known = [...names];
  const near = nearest(name.name, known);
  if (near === undefined) {
    const some = known
      .slice(0, 8)
      .map((each) => `\`${each}\``)
      .join(', ');
    const message = `${where} has no \`${name.name}\`; it has ${some || 'nothing of that kind'}${known.length > 8 ? ', …' : ''}`;
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

const ROOT_WORDS: ReadonlyMap<string, string> = new Map([
  ['record', '@record'],
  ['next', '@next'],
  ['now', '@now'],
  ['request', '@request'],
  ['auth', '@request.auth'],
  ['query', '@request.query'],
  ['data', '@request.data'],
]);

/** A bare word is a variable, a field without `@record.`, a root without `@`, or a string without quotes. */
export function unknownVariable(path: Path, place: Place): undefined {
  const { name, span } = path.variable!;
  const root = ROOT_WORDS.get(name);
  const suggest = (message: string, replacement: string, at: Span = span): undefined =>
    place.report({
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
  const member = path.steps.length === 0 ? memberOfVariable(name, place) : undefined;
  const field = member ?? memberOfRecord(name, place);
  if (field !== undefined) return suggest(`unknown name \`${name}\`; did you mean \`${field}\`?`, field);
  if (path.steps.length > 0) {
    const message = `unknown name \`${name}\`; a path begins with \`@record\`, \`@next\`, \`@request\` or the variable of a quantifier`;
    return place.report({ code: 'variable_unknown', message, span });
  }
  // With quotes, it would be a constant beside a literal.
  if (isConstant(place.beside, place)) return place.report(nothingNamed(path.variable!, place));
  return place.report(unquoted(path.variable!));
}

/** A literal, or a name that may be one without its quotes. */
function isConstant(operand: Operand | undefined, { variables }: Place): boolean {
  if (operand?.kind !== 'path') return operand !== undefined;
  return operand.root === 'variable' && operand.steps.length === 0 && !variables.has(operand.variable!.name);
}

/** A name that is in the record of a variable, or else near one; the innermost variable first. */
function memberOfVariable(name: string, place: Place): string | undefined {
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

function memberOfRecord(name: string, place: Place): string | undefined {
  const collection = place.catalog.collections.get(place.collection);
  const names = collection === undefined || place.isBody ? [] : namesOf(collection);
  const found = names.includes(name) ? name : nearest(name, names);
  return found === undefined ? undefined : `@record.${found}`;
}

function nothingNamed({ name, span }: Name, place: Place): CheckIssue {
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
export function unknownMember(path: Path, place: Place): undefined {
  const { name, span } = path.variable!;
  const collection = place.catalog.collections.get(place.collection);
  const names = [...place.variables.keys(), ...(collection === undefined ? [] : namesOf(collection))];
  const instead = (replacement: string): undefined => {
    const message = `unknown name \`${name}\`; did you mean \`${replacement}\`?`;
    return place.report({ code: 'name_unknown', message, span, suggestion: replacement, fix: { span, replacement } });
  };
  if (name === 'now' || name === 'me') return instead(`@${name}`);
  if (place.params !== undefined && Object.hasOwn(place.params, name)) return instead(`$${name}`);
  const near = nearest(name, names);
  if (near !== undefined) return instead(near);
  if (path.steps.length > 0) {
    reportUnknownName({ name: path.variable!, where: `\`${place.collection}\``, names }, place);
    return;
  }
  place.report(unquoted(path.variable!, `\`${place.collection}\` has no \`${name}\``));
}

function unquoted({ name, span }: Name, found = `unknown name \`${name}\``): CheckIssue {
  const quoted = JSON.stringify(name);
  const message = `${found}; string literals need quotes: ${quoted}`;
  return { code: 'text_unquoted', message, span, suggestion: quoted, fix: { span, replacement: quoted } };
}

/** The innermost variable whose record has the name. */
function innermostWith(name: string | undefined, place: Place): string | undefined {
  if (name === undefined) return undefined;
  return membersOfVariables(place).find(([, names]) => names.includes(name))?.[0];
}

/** Each variable with the names of its record, the innermost first. */
function membersOfVariables(place: Place): readonly (readonly [string, readonly string[]])[] {
  return [...place.variables].reverse().flatMap(([variable, bound]) => {
    const of = bound.kind === 'variable' ? bound.collection : bound.record?.at;
    const collection = of === undefined ? undefined : place.catalog.collections.get(of);
    return collection === undefined ? [] : [[variable, namesOf(collection)] as const];
  });
}
