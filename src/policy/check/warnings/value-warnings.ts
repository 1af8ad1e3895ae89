/** Warnings about one comparison: addresses of callers, the order of an enum, datetimes that are never reached. */
import type { Span } from '../../../../grammar/syntax.ts';
import { ENDS_WITH, equalityOf, OPERATORS } from '../../operators.ts';
import { isText } from '../../scalar-types.ts';
import {
  type CatalogField,
  type CheckedCompare,
  type CheckedOperand,
  type LiteralOperand,
  STAMPS,
} from '../../types.ts';
import { isOfCaller } from '../../visit.ts';
import type { Warning } from './warning-list.ts';

type Slice = (span: Span) => string;

// ---------------------------------------------------------------- addresses

const isEmail = (operand: CheckedOperand): boolean => isOfCaller(operand) && operand.name === 'email';

/** `@request.auth.email_verified`, as an item of the surrounding `and`. */
export const isVerifiedTest = ({ op, left, right }: CheckedCompare): boolean =>
  op === equalityOf(true) &&
  isOfCaller(left) &&
  left.name === 'email_verified' &&
  right.kind === 'literal' &&
  right.value === true;

/** A test that other people's addresses pass. */
export function emailDomain({ op, left, right, span }: CheckedCompare, slice: Slice): Warning | undefined {
  if (!isEmail(left) || right.kind !== 'literal' || typeof right.value !== 'string') return undefined;
  const stranger = strangerOf(op, right.value);
  if (stranger === undefined) return undefined;
  const wanted = domainTest(right.value);
  const message = `\`${stranger}\` passes this test, too`;
  if (wanted === undefined) return { code: 'email_domain', message, span };
  const replacement = `${slice(left.span)} ${wanted}`;
  const hint = `; did you mean \`${replacement}\`?`;
  return { code: 'email_domain', message: message + hint, span, fix: { span, replacement } };
}

const ADDRESS = /^[^@\s]+@[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i;

/** An address of another domain, or of another person, that passes the test. */
function strangerOf(op: CheckedCompare['op'], value: string): string | undefined {
  const { family, holds } = OPERATORS[op];
  if (family !== 'text' || value === '') return undefined;
  const name = value.replace(/@.*/, '');
  const foreign = [`ann@evil-${value}`, `ann${value}.evil.org`, `${name}@evil.org`];
  if (name !== '') foreign.push(`not-${value}`);
  return foreign.find((address) => ADDRESS.test(address) && !address.includes('-.') && holds(address, value));
}

/** The test that was meant, where the text leaves no doubt. */
function domainTest(value: string): string | undefined {
  if (/^@?[^@\s]+\.[^@\s.]+$/.test(value))
    return `${ENDS_WITH} ${JSON.stringify(value.startsWith('@') ? value : `@${value}`)}`;
  return ADDRESS.test(value) ? `${equalityOf(true)} ${JSON.stringify(value)}` : undefined;
}

/** Finds a positive test of an address without a test of `email_verified`. */
export function emailUnverified(compare: CheckedCompare, slice: Slice): Warning | undefined {
  const { left, right, span } = compare;
  const [email, other] = isEmail(left) ? [left, right] : [right, left];
  // Addresses of users are unique: the caller's own is that of no other user.
  if (!isEmail(email) || isAddressOfUser(other) || isEmptyText(other)) return undefined;
  const replacement = `(@request.auth.email_verified and ${slice(span)})`;
  const message = `anyone can register with an address that is not theirs; write \`${replacement}\` to accept verified addresses only`;
  return { code: 'email_unverified', message, span: email.span, fix: { span, replacement } };
}

const isAddressOfUser = (operand: CheckedOperand): boolean =>
  operand.kind === 'column' &&
  operand.column.kind === 'field' &&
  operand.column.field.name === 'email' &&
  (operand.steps.at(-1)?.relation.collection ?? operand.collection) === 'users';

export const isEmptyText = (operand: CheckedOperand): boolean => operand.kind === 'literal' && operand.value === '';

// ---------------------------------------------------------------- the order of an enum

/** `status > "draft"`, which compares letters. */
export function enumOrder({ op, left, right, span }: CheckedCompare, slice: Slice): Warning | undefined {
  if (OPERATORS[op].direction === undefined) return undefined;
  const enumeration = [left, right].map(enumField).find((field) => field !== undefined);
  if (enumeration === undefined) return undefined;
  const { name, enum: values = [] } = enumeration;
  const message = `\`${name}\` is an enum, and \`${op}\` orders its values as strings, not as the list does; name the values with \`in\``;
  const literal = [left, right].find((side): side is LiteralOperand => side.kind === 'literal');
  const column = left.kind === 'column' ? left : right;
  if (literal === undefined || column.kind !== 'column') return { code: 'enum_order', message, span };
  const holds = (value: string): boolean =>
    column === left
      ? OPERATORS[op].holds(value, literal.value as string)
      : OPERATORS[op].holds(literal.value as string, value);
  const list = values
    .filter((value) => typeof value === 'string' && holds(value))
    .map((value) => JSON.stringify(value));
  const same = `\`${slice(column.span)} in [${list.join(', ')}]\``;
  return { code: 'enum_order', message: `${message}: this means ${same}`, span };
}

function enumField(operand: CheckedOperand): CatalogField | undefined {
  if (operand.kind !== 'column' || operand.column.kind !== 'field') return undefined;
  const { field } = operand.column;
  return field.enum !== undefined && isText(field.type) ? field : undefined;
}

// ---------------------------------------------------------------- datetimes

/** `created_at > @now + 24h`: the service sets these fields to the current time. */
export function beyondNow({ op, left, right, span }: CheckedCompare, slice: Slice): Warning | undefined {
  const isSwapped = left.kind === 'now';
  const [stamp, now] = isSwapped ? [right, left] : [left, right];
  const effective = isSwapped ? OPERATORS[op].mirror : op;
  if (effective === undefined || now.kind !== 'now' || now.seconds <= 0) return undefined;
  if (stamp.kind !== 'column' || stamp.column.kind !== 'field' || !STAMPS.includes(stamp.column.field.name))
    return undefined;
  const { direction, family, negative } = OPERATORS[effective];
  if (family !== 'order' && family !== 'equality') return undefined;
  const isAlways = direction === 'down' || negative === true;
  const past = slice(now.span).replace('+', '-');
  const message = `\`${stamp.column.field.name}\` is never in the future, so this is ${isAlways ? 'always true' : 'never true'}; did you mean \`${past}\`?`;
  const fix = family === 'order' ? { span: now.span, replacement: past } : undefined;
  return { code: isAlways ? 'always_true' : 'never_true', message, span, ...(fix && { fix }) };
}
