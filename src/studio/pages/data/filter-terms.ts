/** A filter made of clicks: comparisons joined by `and`, and back from their text. */
import type { ServedField, ServedRelation } from '../../data/schema-answer.ts';

const TEXT_OPERATORS = ['=', '!=', 'contains', 'starts with', 'is null', 'is not null'];
const ORDER_OPERATORS = ['=', '!=', '<', '<=', '>', '>=', 'is null', 'is not null'];
const PLAIN_OPERATORS = ['=', '!=', 'is null', 'is not null'];
const ORDERED_TYPES = new Set(['int', 'float', 'bigint', 'decimal', 'datetime', 'date', 'time']);

export function operatorsFor(member: ServedField | ServedRelation | undefined): readonly string[] {
  if (member === undefined || !('type' in member)) return PLAIN_OPERATORS;
  if (member.enum !== undefined || member.type === 'bool' || member.type === 'uuid') return PLAIN_OPERATORS;
  if (ORDERED_TYPES.has(member.type)) return ORDER_OPERATORS;
  return member.search ? [...TEXT_OPERATORS, 'matches'] : TEXT_OPERATORS;
}

export const takesValue = (operator: string): boolean => !operator.endsWith('null');

const UNQUOTED = new Set(['int', 'float', 'bool']);

interface TermMember {
  readonly name: string;
  /** The type of a field, or of the key of a relation's records. */
  readonly type: string | undefined;
}

/** `status = "open"`. A value that is not of the type is quoted; the service says what is wrong with it. */
export function termOf({ name, type = '' }: TermMember, operator: string, value: string): string {
  if (!takesValue(operator)) return `${name} ${operator}`;
  const isNumber = UNQUOTED.has(type) && /^(?:true|false|-?\d+(?:\.\d+)?)$/.test(value);
  return `${name} ${operator} ${isNumber ? value : JSON.stringify(value)}`;
}

const TERM =
  /^(\w+(?:\.\w+)* (?:=|!=|<=?|>=?|contains|starts with|matches) (?:"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false)|\w+ is (?:not )?null)/;

/** The terms of a filter that has nothing else; undefined for any other expression. */
export function termsOf(filter: string): readonly string[] | undefined {
  const terms: string[] = [];
  let rest = filter.trim();
  while (rest !== '') {
    const term = TERM.exec(rest)?.[0];
    if (term === undefined) return undefined;
    terms.push(term);
    rest = rest.slice(term.length);
    if (rest === '') break;
    if (!rest.startsWith(' and ')) return undefined;
    rest = rest.slice(' and '.length);
  }
  return terms;
}
