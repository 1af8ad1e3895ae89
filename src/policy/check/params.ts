/** The params of a filter: `$name` takes the type of the other side, or of its own value if that side has no type. */
import type { ParamOperand } from '../../../grammar/syntax.ts';
import { isWhole } from '../scalar-types.ts';
import type { RequestOperand, ValueType } from '../types.ts';
import { InexactNumeral } from '../values.ts';
import type { CheckerPlace, QueryName } from './place.ts';
import { reportUnknownName } from './unknown-names.ts';

export function paramOf({ name, span }: ParamOperand, place: CheckerPlace): QueryName | undefined {
  const { params = {} } = place;
  if (Object.hasOwn(params, name)) return { kind: 'query', source: 'param', name, given: params[name], span };
  const names = Object.keys(params).map((each) => `$${each}`);
  if (names.length > 0)
    return reportUnknownName(
      { name: { name: `$${name}`, span }, where: 'the query', names, code: 'param_missing' },
      place,
    );
  const message = `\`$${name}\` has no value; expected one under \`params\``;
  return place.report({ code: 'param_missing', message, span });
}

/** Reads the param for a comparison with type `against`. Numbers compare by value, so it need not be an int. */
export function readAs({ source, name, span }: QueryName, against: ValueType, list: boolean): RequestOperand {
  const operand = { kind: 'request', source, name, type: against, list, nullable: true, span } as const;
  return source === 'param' && isWhole(against) ? { ...operand, type: 'float', meetsInt: true } : operand;
}

export function readAsGiven(param: QueryName): RequestOperand {
  return readAs(param, typeGiven(param.given) ?? 'string', Array.isArray(param.given));
}

/** The type of a list is that of its elements. */
export function typeGiven(given: unknown): ValueType | undefined {
  const value: unknown = Array.isArray(given) ? given.find((element) => element !== null) : given;
  if (value instanceof InexactNumeral) return 'float';
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'number':
      return 'float';
    case 'boolean':
      return 'bool';
    default:
      return undefined;
  }
}
