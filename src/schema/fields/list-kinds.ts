/** Lists of values: one kind for each type of element. */

import { counted } from '../../counted.ts';
import { type ElementOfList, type ListType, MOST_ELEMENTS, SCALARS } from '../../policy/scalar-types.ts';
import { arrayTexts, listText } from '../../policy/scalars/list-values.ts';
import type { Scalar } from '../../policy/values.ts';
import { bool } from './bool.ts';
import { date } from './date.ts';
import { datetime } from './datetime.ts';
import { float } from './float.ts';
import { int } from './int.ts';
import { asInPolicies, type Constraints, type FieldKind, type Read, reject } from './kind.ts';
import { string } from './string.ts';
import { listTextForm } from './text-forms/list-text.ts';

const ELEMENTS: Readonly<Record<ElementOfList, FieldKind>> = { string, int, float, bool, date, datetime };

/** An entry of an index holds a whole element: at four bytes a character, a longer one might not fit (2704 bytes). */
const MOST_CHARACTERS = 675;
const BOUNDS: Readonly<Partial<Record<ElementOfList, Constraints>>> = { string: { max: MOST_CHARACTERS } };

function readElements(
  kind: FieldKind,
  bounds: Constraints,
  value: unknown,
): Read | { readonly elements: readonly Scalar[] } {
  if (!Array.isArray(value)) return reject('wrong_type', `expected a list, each element ${kind.expected}`);
  const elements: Scalar[] = [];
  for (const [i, each] of value.entries()) {
    const read = kind.fromJson(each, bounds);
    if (read.error !== undefined) return reject(read.error.code, `element ${i}: ${read.error.detail}`);
    elements.push(read.value);
  }
  return { elements };
}

function readListField(element: ElementOfList, value: unknown, { min = 0, max = MOST_ELEMENTS }: Constraints): Read {
  // A long body is not read to its end.
  if (Array.isArray(value) && value.length > Number(max))
    return reject('too_long', `expected ${counted(max, 'element')} or less`);
  const read = readElements(ELEMENTS[element], BOUNDS[element] ?? {}, value);
  if (!('elements' in read)) return read;
  if (read.elements.length < Number(min)) return reject('too_short', `expected ${counted(min, 'element')} or more`);
  return { value: listText(read.elements) };
}

/** A cell of a CSV file. */
function fromText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const STORED_AS_ARRAYS: Readonly<Partial<Record<ElementOfList, Pick<FieldKind['adoption'], 'storedAs'>>>> = {
  string: {
    storedAs: {
      'varchar[]': { column: 'character varying[]', readAs: '::text[]' },
      'uuid[]': { column: 'uuid[]', readAs: '::text[]' },
    },
  },
  int: {
    storedAs: {
      'integer[]': { column: 'integer[]', readAs: '::int8[]' },
      'smallint[]': { column: 'smallint[]', readAs: '::int8[]' },
    },
  },
  // The shortest text of a real is its value.
  float: { storedAs: { 'real[]': { column: 'real[]', readAs: '::text[]::float8[]' } } },
};

function listField(element: ElementOfList): FieldKind {
  const type: ListType = `${element}[]`;
  const kind = ELEMENTS[element];
  const fromCell = (cell: string): string => listText(arrayTexts(cell).map(kind.fromCell));
  return {
    name: type,
    doc: `at most ${MOST_ELEMENTS} elements, each ${kind.expected}`,
    ...asInPolicies(SCALARS[type]),
    column: `${kind.column}[]`,
    // PostgreSQL prints another text than the canonical one.
    hasColumnDefault: false,
    expected: `a list, each element ${kind.expected}`,
    bounds: 'elements',
    hasEnum: false,
    fromJson: (value, constraints) => readListField(element, value, constraints),
    fromText,
    toJson: (cell) => `[${arrayTexts(cell).map(kind.toJson).join(',')}]`,
    fromCell,
    isForeignCell: (cell) => arrayTexts(cell).some((each) => kind.isForeignCell?.(each) === true),
    jsonSchema: ({ min, max = MOST_ELEMENTS }) => ({
      type: 'array',
      items: kind.jsonSchema(BOUNDS[element] ?? {}),
      minItems: min,
      maxItems: max,
    }),
    typescript: () => `${kind.typescript({})}[]`,
    text: listTextForm(element, `${kind.column}[]`, MOST_CHARACTERS),
    adoption: {
      narrower: [],
      ...STORED_AS_ARRAYS[element],
      defaultOf: (expression) => (/^'\{\}'::/.test(expression) ? '[]' : undefined),
    },
  };
}

export const LIST_KINDS: Readonly<Record<ListType, FieldKind>> = {
  'string[]': listField('string'),
  'int[]': listField('int'),
  'float[]': listField('float'),
  'bool[]': listField('bool'),
  'date[]': listField('date'),
  'datetime[]': listField('datetime'),
};
