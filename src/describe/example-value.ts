/** Makes a value that fits a JSON Schema, to show and to start from. */
import {
  type ApiDocument,
  createBodyOf,
  neededReferences,
  resolved,
  type ShownOperation,
  type ShownSchema,
} from './api-document.ts';

/** Examples of a request leave out the ids of records, which a caller would have to know. */
type Use = 'request' | 'answer';

/** Texts by the format of JSON Schema. */
const FORMATTED_EXAMPLES: Readonly<Record<string, string>> = {
  uuid: '0190b0a0-0000-7000-8000-000000000001',
  date: '2026-01-31',
  'partial-time': '09:30:00',
  byte: 'aGVsbG8=',
  decimal: '12.50',
  'date-time': '2026-01-31T12:00:00.000000Z',
};
/** A deeper example is of no use. */
const MAX_EXAMPLE_DEPTH = 6;

export function exampleValue(given: ShownSchema, document: ApiDocument, use: Use, name = 'value', depth = 0): unknown {
  const schema = resolved(given, document);
  const of = (part: ShownSchema, inside = depth): unknown => exampleValue(part, document, use, name, inside);
  const { oneOf, allOf, items, properties, required = [] } = schema;
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (oneOf !== undefined) return of(oneOf[0]!);
  if (allOf !== undefined) return Object.assign({}, ...allOf.map((part) => of(part)));
  if (items !== undefined) return depth < MAX_EXAMPLE_DEPTH ? [of(items, depth + 1)] : [];
  if (properties === undefined) return name === 'roles' ? exampleRole(document) : scalarExample(schema, name);
  const members = depth < MAX_EXAMPLE_DEPTH ? Object.entries(properties) : [];
  const { op, collection, data } = properties;
  if (op?.const === 'create' && collection?.enum !== undefined && data !== undefined)
    return createExample(collection.enum.map(String), document);
  const shown = members.filter(([key, each]) => required.includes(key) || isShown(key, each, document, use));
  const isLacking = shown.length < (schema.minProperties ?? 0);
  const wanted = 'add' in properties ? members.filter(isAddition) : isLacking ? members.slice(0, 1) : shown;
  return Object.fromEntries(wanted.map(([key, each]) => [key, exampleValue(each, document, use, key, depth + 1)]));
}

/** The change of a list that takes nothing away. */
const isAddition = ([key]: readonly [string, ShownSchema]): boolean => key === 'add';

/** An operation of a batch: in a collection whose records need no other one, if there is one. */
function createExample(collections: readonly string[], document: ApiDocument): unknown {
  const bodies = collections.flatMap((name) => {
    const body = createBodyOf(name, document);
    return body === undefined ? [] : [{ name, body }];
  });
  const isFree = ({ body }: { readonly body: ShownSchema }): boolean =>
    Object.keys(neededReferences(body, document)).length === 0;
  const chosen = bodies.find(isFree) ?? bodies[0];
  const { data = {} } =
    chosen === undefined ? {} : (exampleValue(chosen.body, document, 'request') as { data?: unknown });
  return { op: 'create', collection: chosen?.name ?? collections[0], data };
}

function isShown(name: string, given: ShownSchema, document: ApiDocument, use: Use): boolean {
  if (use === 'answer') return !name.startsWith('expand');
  const { format, properties, 'x-guarded': isGuarded } = resolved(given, document);
  return format !== 'uuid' && properties === undefined && isGuarded !== true;
}

const TEXTS: Readonly<Record<string, string>> = {
  email: 'ada@example.com',
  password: 'lovelace and babbage',
  access_token: 'eyJhbGciOi…',
};

function exampleRole({ components }: ApiDocument): unknown {
  return components?.schemas?.Role?.enum?.[0] ?? 'role';
}

function scalarExample({ type, format, minLength = 0, maxLength, ...schema }: ShownSchema, name: string): unknown {
  const types = typeof type === 'string' ? [type] : (type ?? []);
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  const isOf = (wanted: string): boolean => types.includes(wanted);
  if (isOf('boolean')) return true;
  if (isOf('integer') || isOf('number')) return Math.min(Math.max(1, minimum), maximum);
  if (isOf('object')) return {};
  if (!isOf('string')) return null;
  const formatted = FORMATTED_EXAMPLES[format ?? ''];
  if (formatted !== undefined) return formatted;
  return (TEXTS[name] ?? name.replaceAll('_', ' ')).padEnd(minLength, '.').slice(0, maxLength);
}

/** The paths with an example in each JSON body of a request. */
export function pathsWithExamples(document: ApiDocument): ApiDocument['paths'] {
  const described = Object.entries(document.paths).map(([path, item]) => {
    const operations = Object.entries(item).map(([method, operation]) => [
      method,
      withExamples(operation as ShownOperation, document),
    ]);
    return [path, Object.fromEntries(operations)];
  });
  return Object.fromEntries(described);
}

function withExamples(operation: ShownOperation, document: ApiDocument): ShownOperation {
  const { requestBody } = operation;
  const { schema, ...more } = requestBody?.content?.[JSON_TYPE] ?? {};
  if (schema === undefined) return operation;
  const example = exampleValue(schema, document, 'request');
  return { ...operation, requestBody: { ...requestBody, content: { [JSON_TYPE]: { schema, example, ...more } } } };
}

const JSON_TYPE = 'application/json';
