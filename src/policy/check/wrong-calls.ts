/** Errors of a call: a condition that nobody declared, or too few or too many arguments. */
import { nearest } from '../../../grammar/suggest.ts';
import type { Call } from '../../../grammar/syntax.ts';
import { QUANTIFIERS } from '../../../grammar/tokens.ts';
import type { ValueType } from '../scalar-types.ts';
import type { NamedCondition } from '../types.ts';
import type { CheckIssue } from './place.ts';

/** `text`: what the spans of the call point into. */
export function unknownCondition(call: Call, known: readonly string[], text: string): CheckIssue {
  const { name } = call;
  const quantifier = quantifierFor(call, text);
  if (quantifier !== undefined) return quantifier;
  const near = nearest(name.name, [...known, ...QUANTIFIERS]);
  const names = known
    .slice(0, 8)
    .map((each) => `\`${each}\``)
    .join(', ');
  const expected = names === '' ? '`any`, `all`, `none` or a condition declared under `conditions`' : `one of ${names}`;
  const message = `unknown condition \`${name.name}\`; ${near === undefined ? `expected ${expected}` : `did you mean \`${near}\`?`}`;
  const fix = near === undefined ? {} : { suggestion: near, fix: { span: name.span, replacement: near } };
  return { code: 'function_unknown', message, span: name.span, ...fix };
}

/** `exists(@record.tags)` */
function quantifierFor({ name, args, span }: Call, text: string): CheckIssue | undefined {
  const [path, ...more] = args;
  if (!/^(?:exists|some)$/i.test(name.name) || path?.kind !== 'path' || more.length > 0) return undefined;
  const replacement = `any(${text.slice(path.span.start, path.span.end)} as x, true)`;
  const message = `\`${name.name}(…)\` is not a function of the language; did you mean \`${replacement}\`?`;
  return { code: 'function_unknown', message, span, suggestion: replacement, fix: { span, replacement } };
}

export function wrongArguments({ span, args }: Call, { name, parameters }: NamedCondition): CheckIssue {
  const list = parameters.map((parameter) => `${parameter.name}: ${typeName(parameter.type)}`).join(', ');
  const message = `\`${name}(${list})\` takes ${parameters.length} argument${parameters.length === 1 ? '' : 's'}, found ${args.length}`;
  return { code: 'argument_count', message, span };
}

const typeName = (type: ValueType): string => (typeof type === 'object' ? type.id : type);
