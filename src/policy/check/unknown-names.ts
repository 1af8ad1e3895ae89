/** Reports unknown names, each with the nearest known one. */
import type { Fix } from '../../../grammar/policy-error.ts';
import { nearest } from '../../../grammar/suggest.ts';
import type { Name, Path, Span } from '../../../grammar/syntax.ts';
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
    return place.fault({ code, message, span: name.span });
  }
  const fix: Fix = { span: name.span, replacement: near };
  const message = `${where} has no \`${name.name}\`; did you mean \`${near}\`?`;
  return place.fault({ code, message, span: name.span, suggestion: near, fix });
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
  return place.fault(unquoted(path.variable!));
}

/** The first name of a path in a filter: a variable, or a member of the record. */
export function unknownMember(path: Path, place: Place): undefined {
  const { name, span } = path.variable!;
  const collection = place.catalog.collections.get(place.collection);
  const names = [...place.variables.keys(), ...(collection === undefined ? [] : namesOf(collection))];
  const instead = (replacement: string): undefined => {
    const message = `unknown name \`${name}\`; did you mean \`${replacement}\`?`;
    return place.fault({ code: 'name_unknown', message, span, suggestion: replacement, fix: { span, replacement } });
  };
  if (name === 'now' || name === 'me') return instead(`@${name}`);
  if (place.params !== undefined && Object.hasOwn(place.params, name)) return instead(`$${name}`);
  const near = nearest(name, names);
  if (near !== undefined) return instead(near);
  if (path.steps.length > 0) {
    reportUnknownName({ name: path.variable!, where: `\`${place.collection}\``, names }, place);
    return;
  }
  place.fault(unquoted(path.variable!, `\`${place.collection}\` has no \`${name}\``));
}

function unquoted({ name, span }: Name, found = `unknown name \`${name}\``): CheckIssue {
  const quoted = JSON.stringify(name);
  const message = `${found}; string literals need quotes: ${quoted}`;
  return { code: 'text_unquoted', message, span, suggestion: quoted, fix: { span, replacement: quoted } };
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
