/** Records that are named otherwise than by their ids: users by their address, elements by their name. */
import { replacing } from '../../../grammar/policy-error.ts';
import { isText, scalarOf } from '../scalar-types.ts';
import { idOf } from '../types.ts';
import type { Literal } from './literals.ts';
import type { CheckIssue } from './place.ts';
import { type Pair, type ScalarSide, textAt } from './sides.ts';

export const isAddress = (side: ScalarSide): boolean =>
  side.kind === 'literal' && side.literal.kind === 'text' && /^[^@ ]+@[^@ ]+$/.test(side.literal.value);

/** `@record.owner = "ada@example.com"` */
export function addressOfUser({ left, right, at }: Pair, address: ScalarSide): CheckIssue {
  const other = address === left ? right : left;
  const path = textAt(at, other.span).replace(/\.id$/, '');
  const given = { code: 'identifier_malformed', span: address.span };
  const message = 'an address is not an id of `users`, which is a UUID';
  if (other.kind !== 'fixed') return { ...given, message };
  const replacement = `${path}.email`;
  const hint = `${message}; did you mean \`${replacement}\`?`;
  return { ...given, message: hint, ...replacing(other.span, replacement) };
}

/** Fields that commonly name a record. */
const NAMING = ['name', 'label', 'title', 'slug', 'key', 'code', 'email'];

/** `tags contains "vip"`: an element by its name, where its id is expected. */
export function elementByName({ expr, left, at }: Pair, literal: Literal): CheckIssue | undefined {
  if (literal.kind !== 'text' || left.kind !== 'to many') return undefined;
  const { collection } = left.relation.path.relation;
  const { literal: form, readText } = scalarOf(idOf(at.catalog, collection));
  if (form === undefined || readText(literal.value) !== undefined) return undefined;
  const fields = at.catalog.collections.get(collection)?.fields;
  const name = NAMING.find((each) => {
    const field = fields?.get(each);
    return field !== undefined && isText(field.type);
  });
  if (name === undefined) return undefined;
  const replacement = `any(${textAt(at, left.span)} as x, x.${name} = ${textAt(at, literal.span)})`;
  const message = `not ${form.expected}, which an id of \`${collection}\` is; did you mean \`${replacement}\`?`;
  const fix = { span: expr.span, replacement };
  return { code: 'identifier_malformed', message, span: literal.span, suggestion: replacement, fix };
}
