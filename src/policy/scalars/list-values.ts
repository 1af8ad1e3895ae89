/**
 * A list as one value: the text of a PostgreSQL array in one spelling, so that equal lists are equal strings. Strings,
 * dates and datetimes are in quotation marks, numbers and `t` and `f` do not: `{"a","b"}`, `{1,2.5}`, `{t,f}`.
 */
import type { Scalar } from '../values.ts';

const inQuotes = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`;

function elementText(element: Scalar): string {
  if (typeof element === 'string') return inQuotes(element);
  return typeof element === 'boolean' ? (element ? 't' : 'f') : String(element);
}

export const listText = (elements: readonly Scalar[]): string => `{${elements.map(elementText).join(',')}}`;

/**
 * The texts of the elements of an array as PostgreSQL prints it; NULL is left out, and so are inner braces. Throws
 * RangeError for another text, as a history has it from before a change of type.
 */
export function arrayTexts(array: string): readonly string[] {
  const texts: string[] = [];
  // Other lower bounds than 1 come before the braces: `[0:1]={a,b}`.
  const start = array.indexOf('{');
  if (start < 0 || !array.endsWith('}')) throw notAnArray();
  for (let i = start; i < array.length; i++) {
    const char = array[i]!;
    if (char === '{' || char === '}' || char === ',') continue;
    if (char === '"') {
      const end = endOfQuoted(array, i + 1);
      texts.push(array.slice(i + 1, end).replace(/\\([\s\S])/g, '$1'));
      i = end;
      continue;
    }
    let end = i;
    while (array[end] !== ',' && array[end] !== '}') end++;
    const text = array.slice(i, end);
    if (text !== 'NULL') texts.push(text);
    i = end - 1;
  }
  return texts;
}

function endOfQuoted(array: string, from: number): number {
  let end = from;
  while (array[end] !== '"') {
    if (end >= array.length) throw notAnArray();
    end += array[end] === '\\' ? 2 : 1;
  }
  return end;
}

const notAnArray = (): RangeError => new RangeError('expected the text of an array');

function elementsIn(list: string): readonly Scalar[] {
  if (list === '{}') return [];
  if (list[1] === '"') {
    // Without a backslash no element holds a quotation mark.
    return list.includes('\\') ? arrayTexts(list) : list.slice(2, -2).split('","');
  }
  const texts = list.slice(1, -1).split(',');
  return list[1] === 't' || list[1] === 'f' ? texts.map((text) => text === 't') : texts.map(Number);
}

let latestList = '{}';
let latestElements: readonly Scalar[] = [];

/** The elements of a list's canonical text. The tests of one record ask for the same list. */
export function listElements(list: string): readonly Scalar[] {
  if (list !== latestList) {
    latestElements = elementsIn(list);
    latestList = list;
  }
  return latestElements;
}
