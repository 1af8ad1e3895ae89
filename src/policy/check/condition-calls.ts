/** Named conditions: their heads, their bodies, the arguments of a call, and its errors. */
import { parse } from '../../../grammar/parser.ts';
import { replacing } from '../../../grammar/policy-error.ts';
import { firstNames, nearest } from '../../../grammar/suggest.ts';
import type { Call, Expr, Operand } from '../../../grammar/syntax.ts';
import { FUNCTION_NAMES, RESERVED } from '../../../grammar/tokens.ts';
import { describeType, isNumeric, isWhole, SCALARS, type ScalarType, type ValueType } from '../scalar-types.ts';
import { type Catalog, type CheckedOperand, idOf, type NamedCondition, type Parameter } from '../types.ts';
import { ofCaller } from '../visit.ts';
import { readLiteral } from './literals.ts';
import { readAs } from './params.ts';
import { type BoundParameter, type CheckerPlace, type CheckIssue, recordStart } from './place.ts';
import { resolve } from './resolve.ts';
import { nowOperand } from './sides.ts';
import { sizeOf } from './size.ts';

export interface Head {
  readonly name: string;
  readonly parameters: readonly Parameter[];
}

const CONDITION_HEAD = /^\s*([A-Za-z_][A-Za-z0-9_]*)\s*\(([^()]*)\)\s*$/;
const PARAMETER = /^\s*([A-Za-z_][A-Za-z0-9_]*)\s*:\s*([A-Za-z_][A-Za-z0-9_]*)\s*$/;
const WHOLE = { start: 0, end: 0 };

/** `is_writer(team: teams, least: int)` */
export function readHead(key: string, catalog: Catalog): Head | CheckIssue {
  const head = CONDITION_HEAD.exec(key);
  if (head === null) {
    const message = `expected a name and its parameters, such as \`is_member(team: teams)\`, found \`${key.slice(0, 60)}\``;
    return { code: 'condition_malformed', message, span: WHOLE };
  }
  const [, name = '', list = ''] = head;
  if (RESERVED.has(name)) return reservedName(name);
  const parameters: Parameter[] = [];
  for (const text of list.trim() === '' ? [] : list.split(',')) {
    const parameter = readParameter(text, parameters, catalog);
    if ('code' in parameter) return parameter;
    parameters.push(parameter);
  }
  return { name, parameters };
}

function readParameter(text: string, known: readonly Parameter[], catalog: Catalog): Parameter | CheckIssue {
  const parts = PARAMETER.exec(text);
  if (parts === null) {
    const message = `expected a parameter such as \`team: teams\`, found \`${text.trim().slice(0, 60)}\``;
    return { code: 'condition_malformed', message, span: WHOLE };
  }
  const [, name = '', word = ''] = parts;
  if (RESERVED.has(name)) return reservedName(name);
  if (known.some((other) => other.name === name)) {
    return { code: 'parameter_repeated', message: `the parameter \`${name}\` is given twice`, span: WHOLE };
  }
  const type = typeNamed(word, catalog);
  if (type !== undefined) return { name, type };
  const near = nearest(word, [...catalog.collections.keys(), ...Object.keys(SCALARS)]);
  const expected = near === undefined ? 'expected a collection or a field type' : `did you mean \`${near}\`?`;
  return { code: 'type_unknown', message: `unknown type \`${word}\`; ${expected}`, span: WHOLE };
}

function typeNamed(word: string, catalog: Catalog): ValueType | undefined {
  if (catalog.collections.has(word)) return idOf(catalog, word);
  return Object.hasOwn(SCALARS, word) ? (word as ScalarType) : undefined;
}

function reservedName(name: string): CheckIssue {
  const message = `\`${name}\` is a word of the language; expected another name`;
  return { code: 'word_reserved', message, span: WHOLE };
}

/** The names of the conditions that an expression calls. */
export function callsIn(expr: Expr): readonly Call[] {
  switch (expr.kind) {
    case 'and':
    case 'or':
      return expr.items.flatMap(callsIn);
    case 'not':
      return callsIn(expr.item);
    case 'quantified':
      return callsIn(expr.condition);
    case 'call':
      return [expr];
    case 'compare':
      return [expr.left, expr.right].flatMap((side) =>
        side.kind === 'count' && side.condition ? callsIn(side.condition) : [],
      );
    case 'is null':
    case 'truth':
      return [];
  }
}

/** A condition that was checked and may be called: its spans say which text they are of. */
export function namedCondition(head: Head, text: string, catalog: Catalog): NamedCondition {
  const { expr } = parse(text);
  if (expr === undefined) throw new Error(`the body of ${head.name} was checked before`);
  const located = JSON.parse(JSON.stringify(expr), (key, value: unknown) =>
    key === 'span' || key === 'opSpan' ? { ...(value as object), source: text } : value,
  ) as Expr;
  return { ...head, expr: located, size: sizeOf(expr, catalog) };
}

/** The values of the parameters while a body is checked by itself. */
export function unboundParameter({ name, type }: Parameter): BoundParameter {
  const operand: CheckedOperand = { ...ofCaller(`(${name})`, WHOLE), type, list: false, nullable: false };
  if (typeof type !== 'object') return { kind: 'parameter', operand, names: 0 };
  const scope = { kind: 'variable', name: `(${name})` } as const;
  const record = { scope, collection: type.id, steps: [], at: type.id, nullable: false };
  return { kind: 'parameter', operand, record, names: 0 };
}

// ---------------------------------------------------------------- arguments

export function bindArgument(parameter: Parameter, argument: Operand, place: CheckerPlace): BoundParameter | undefined {
  switch (argument.kind) {
    case 'path':
      return bindPath(parameter, argument, place);
    case 'now': {
      const operand = nowOperand(argument, place.catalog);
      return fits(operand.type, parameter.type)
        ? argumentOf(operand)
        : place.report(unfit(parameter, operand.type, argument));
    }
    case 'text':
    case 'number':
    case 'bool': {
      if (typeof parameter.type === 'object') return place.report(unfit(parameter, `a literal`, argument));
      const read = readLiteral(argument, parameter.type);
      if ('code' in read) return place.report(read);
      if (!fits(read.type, parameter.type)) return place.report(unfit(parameter, describeType(read.type), argument));
      return argumentOf(read);
    }
    case 'count':
      return place.report(unfit(parameter, 'a count', argument));
    case 'param':
      return place.report(unfit(parameter, 'a param', argument));
    case 'ancestors':
      return place.report(unfit(parameter, 'many records', argument));
    case 'list':
    case 'null':
      return place.report(unfit(parameter, argument.kind === 'list' ? 'a list' : '`null`', argument));
  }
}

const argumentOf = (operand: CheckedOperand): BoundParameter => ({ kind: 'parameter', operand, names: 0 });

function bindPath(
  parameter: Parameter,
  path: Extract<Operand, { kind: 'path' }>,
  place: CheckerPlace,
): BoundParameter | undefined {
  const named = resolve(path, place);
  if (named === undefined) return undefined;
  if (named.kind === 'to many') return place.report(unfit(parameter, 'many records', path));
  if (named.kind === 'query') {
    return withRecord(readAs(named, parameter.type, false), 1);
  }
  if ('list' in named && named.list) return place.report(unfit(parameter, 'a list', path));
  if (!fits(named.type, parameter.type)) return place.report(unfit(parameter, describeType(named.type), path));
  const outer = path.root === 'variable' ? place.variables.get(path.variable!.name) : undefined;
  const names = path.steps.length + (outer?.kind === 'parameter' ? outer.names : 0);
  return withRecord(named, names);
}

function withRecord(operand: CheckedOperand, names: number): BoundParameter {
  const record = recordStart(operand);
  return { kind: 'parameter', operand, names, ...(record && { record }) };
}

/** An int is a float; nothing else is converted. */
function fits(found: ValueType, expected: ValueType): boolean {
  if (typeof found === 'object' || typeof expected === 'object')
    return typeof found === 'object' && typeof expected === 'object' && found.id === expected.id;
  return found === expected || (isNumeric(found) && isNumeric(expected) && !isWhole(expected));
}

function unfit({ name, type }: Parameter, found: string, { span }: Operand): CheckIssue {
  const expected = typeof type === 'object' ? `a path to one of \`${type.id}\`` : describeType(type);
  return { code: 'type_mismatch', message: `the parameter \`${name}\` expects ${expected}, found ${found}`, span };
}

// ---------------------------------------------------------------- errors of a call

/** @param text the text that the spans of the call refer to */
export function unknownCondition(call: Call, known: readonly string[], text: string): CheckIssue {
  const { name } = call;
  const quantifier = quantifierFor(call, text);
  if (quantifier !== undefined) return quantifier;
  const near = nearest(name.name, [...known, ...FUNCTION_NAMES.policy]);
  const names = firstNames(known);
  const functions = FUNCTION_NAMES.policy.map((each) => `\`${each}\``).join(', ');
  const declared = names === '' ? 'a condition declared under `conditions`' : `one of ${names}`;
  const expected = `${functions} or ${declared}`;
  const message = `unknown condition \`${name.name}\`; ${near === undefined ? `expected ${expected}` : `did you mean \`${near}\`?`}`;
  return { code: 'function_unknown', message, span: name.span, ...replacing(name.span, near) };
}

/** `exists(@record.tags)` */
function quantifierFor({ name, args, span }: Call, text: string): CheckIssue | undefined {
  const [path, ...more] = args;
  if (!/^(?:exists|some)$/i.test(name.name) || path?.kind !== 'path' || more.length > 0) return undefined;
  const replacement = `any(${text.slice(path.span.start, path.span.end)} as x, true)`;
  const message = `\`${name.name}(…)\` is not a function of the language; did you mean \`${replacement}\`?`;
  return { code: 'function_unknown', message, span, ...replacing(span, replacement) };
}

export function wrongArguments({ span, args }: Call, { name, parameters }: NamedCondition): CheckIssue {
  const list = parameters.map((parameter) => `${parameter.name}: ${typeName(parameter.type)}`).join(', ');
  const message = `\`${name}(${list})\` takes ${parameters.length} argument${parameters.length === 1 ? '' : 's'}, found ${args.length}`;
  return { code: 'argument_count', message, span };
}

const typeName = (type: ValueType): string => (typeof type === 'object' ? type.id : type);
