/** Makes a value that fits a JSON Schema, to show and to start from. */
import { type ApiDocument, resolved, type ShownSchema } from './api-document.ts';

/** Examples of a request leave out the ids of records, which a caller would have to know. */
type Use = 'request' | 'answer';

const EXAMPLE_ID = '0190b0a0-0000-7000-8000-000000000001';
const EXAMPLE_DATETIME = '2026-01-31T12:00:00.000000Z';
/** A deeper example is of no use. */
const MAX_EXAMPLE_DEPTH = 6;

export function exampleValue(schema: ShownSchema, document: ApiDocument, use: Use): unknown {
  return new Example(document, use).of(schema, 'value', 0);
}

class Example {
  readonly #document: ApiDocument;
  readonly #use: Use;

  constructor(document: ApiDocument, use: Use) {
    this.#document = document;
    this.#use = use;
  }

  of(given: ShownSchema, name: string, depth: number): unknown {
    const schema = resolved(given, this.#document);
    const { oneOf, allOf, items, properties } = schema;
    if (schema.default !== undefined) return schema.default;
    if (schema.enum !== undefined) return schema.enum[0];
    if (oneOf !== undefined) return this.of(oneOf[0]!, name, depth);
    if (allOf !== undefined) return Object.assign({}, ...allOf.map((part) => this.of(part, name, depth)));
    if (items !== undefined) return depth < MAX_EXAMPLE_DEPTH ? [this.of(items, name, depth + 1)] : [];
    if (properties !== undefined) return depth < MAX_EXAMPLE_DEPTH ? this.#object(schema, depth + 1) : {};
    return scalarExample(schema, name);
  }

  #object(schema: ShownSchema, depth: number): object {
    const required = new Set(schema.required);
    const shown = Object.entries(schema.properties!).filter(
      ([name, each]) => required.has(name) || this.#isShown(name, each),
    );
    return Object.fromEntries(shown.map(([name, each]) => [name, this.of(each, name, depth)]));
  }

  #isShown(name: string, given: ShownSchema): boolean {
    if (this.#use === 'answer') return !name.startsWith('expand');
    const { format, properties } = resolved(given, this.#document);
    return format !== 'uuid' && properties === undefined;
  }
}

const TEXTS: Readonly<Record<string, string>> = {
  email: 'ada@example.com',
  password: 'lovelace and babbage',
  access_token: 'eyJhbGciOi…',
};

function scalarExample({ type, format, minLength = 0, maxLength, ...schema }: ShownSchema, name: string): unknown {
  const types = typeof type === 'string' ? [type] : (type ?? []);
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  const isOf = (wanted: string): boolean => types.includes(wanted);
  if (isOf('boolean')) return true;
  if (isOf('integer') || isOf('number')) return Math.min(Math.max(1, minimum), maximum);
  if (isOf('object')) return {};
  if (!isOf('string')) return null;
  if (format === 'uuid') return EXAMPLE_ID;
  if (format === 'date-time') return EXAMPLE_DATETIME;
  return (TEXTS[name] ?? name.replaceAll('_', ' ')).padEnd(minLength, '.').slice(0, maxLength);
}
