/** JSON Schemas in the words of people: `string, 1 to 80 characters`, `list of Document`. */
import { type ApiDocument, nameOfRef, resolved, type ShownSchema } from '../../../describe/api-document.ts';
import { html } from '../../pages/escaped.ts';
import { attribute, code, prose } from './html-text.ts';

const TYPE_WORDS: Readonly<Record<string, string>> = { integer: 'int', number: 'float', boolean: 'bool' };
const FORMAT_WORDS: Readonly<Record<string, string>> = {
  uuid: 'id',
  'date-time': 'datetime',
  date: 'date',
  'partial-time': 'time',
  byte: 'bytes',
  int64: 'bigint',
  decimal: 'decimal',
};

/** Returns HTML; references are links to the schema that they name. */
export function typeWords(schema: ShownSchema): string {
  const { $ref, oneOf, allOf, items } = schema;
  if ($ref !== undefined) return schemaLink(nameOfRef($ref));
  if (oneOf !== undefined) return oneOf.map(typeWords).join(' or ');
  if (allOf !== undefined) return allOf.map(typeWords).join(' with ');
  if (schema.enum !== undefined) return `one of ${codeList(schema.enum)}`;
  if (items?.enum !== undefined) return `list of ${codeList(items.enum)}${bounds(schema)}`;
  if (items !== undefined) return `list of ${typeWords(items)}${bounds(schema)}`;
  const types = typeNamesOf(schema).map((type) => html(typeWordOf(type, schema)));
  return `${types.length === 0 ? 'any value' : types.join(' or ')}${bounds(schema)}`;
}

const codeList = (values: readonly unknown[]): string => values.map((value) => code(JSON.stringify(value))).join(', ');

const schemaLink = (name: string): string => `<a href="#schema-${attribute(name)}">${html(name)}</a>`;

const typeNamesOf = ({ type, properties }: ShownSchema): readonly string[] =>
  type === undefined ? (properties === undefined ? [] : ['object']) : typeof type === 'string' ? [type] : type;

function typeWordOf(type: string, { format, contentMediaType }: ShownSchema): string {
  if (type !== 'string') return TYPE_WORDS[type] ?? type;
  return contentMediaType === undefined ? (FORMAT_WORDS[format ?? ''] ?? format ?? 'string') : 'file';
}

function bounds({ minimum, maximum, minLength, maxLength, maxItems, default: otherwise }: ShownSchema): string {
  const isAnyInteger = minimum === Number.MIN_SAFE_INTEGER && maximum === Number.MAX_SAFE_INTEGER;
  const parts = [
    ...(isAnyInteger ? [] : [rangeWords(minimum, maximum, '')]),
    rangeWords(minLength, maxLength, ' characters'),
    rangeWords(undefined, maxItems, ' elements'),
    otherwise === undefined ? '' : `default ${code(JSON.stringify(otherwise))}`,
  ];
  return parts.map((part) => (part === '' ? '' : `, ${part}`)).join('');
}

function rangeWords(least: number | undefined, most: number | undefined, unit: string): string {
  if (least === undefined) return most === undefined ? '' : `at most ${most}${unit}`;
  return most === undefined ? `at least ${least}${unit}` : `${least} to ${most}${unit}`;
}

/**
 * The members of an object as rows; other schemas in a line. A body that is only a reference shows
 * what it refers to.
 */
export function fieldRows(schema: ShownSchema, document: ApiDocument): string {
  const target = resolved(schema, document);
  const { properties } = target;
  const about = target.description === undefined ? '' : `<p>${prose(target.description)}</p>`;
  if (properties === undefined) return `${about}<p>${typeWords(target)}</p>`;
  const required = new Set(target.required);
  const rows = Object.entries(properties).map(
    ([name, each]) =>
      `<tr><th scope="row">${code(name)}${required.has(name) ? REQUIRED : ''}</th><td>${fieldWords(each)}</td></tr>`,
  );
  return `${about}<table>${rows.join('')}</table>`;
}

export const REQUIRED = ' <small class="required">required</small>';

function fieldWords(schema: ShownSchema): string {
  const { description, properties, readOnly } = schema;
  const type = properties === undefined ? typeWords(schema) : `object: ${memberWords(properties)}`;
  const parts = [type, readOnly ? '<small>read only</small>' : '', description === undefined ? '' : prose(description)];
  return parts.filter((part) => part !== '').join('. ');
}

const memberWords = (properties: NonNullable<ShownSchema['properties']>): string =>
  Object.entries(properties)
    .map(([name, schema]) => `${code(name)} ${typeWords(schema)}`)
    .join('; ');
