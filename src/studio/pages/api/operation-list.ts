/** The operations of `/openapi.json`. */
import { transport } from '../../data/api-service.ts';

export interface ApiSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly oneOf?: readonly ApiSchema[];
  readonly anyOf?: readonly ApiSchema[];
  readonly allOf?: readonly ApiSchema[];
  readonly items?: ApiSchema;
  readonly properties?: Readonly<Record<string, ApiSchema>>;
  readonly required?: readonly string[];
}
export interface ApiParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: ApiSchema;
}
type ApiContent = Readonly<Record<string, { readonly schema?: ApiSchema; readonly example?: unknown }>>;
interface ApiResponse {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: ApiContent;
}
interface DescribedOperation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters?: readonly ApiParameter[];
  readonly requestBody?: { readonly content?: ApiContent };
  readonly responses?: Readonly<Record<string, ApiResponse>>;
}
/** A method of a path, with its description. */
export interface ApiOperation extends DescribedOperation {
  readonly method: string;
  readonly path: string;
}
export interface ApiReference {
  readonly operations: readonly ApiOperation[];
  readonly schemaOf: (schema: ApiSchema) => ApiSchema;
  readonly responseOf: (response: ApiResponse) => ApiResponse;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, ApiSchema>>;
    readonly responses: Readonly<Record<string, ApiResponse>>;
  };
}

export async function fetchReference(): Promise<ApiReference> {
  const { paths, components } = await transport.json<OpenApi>('/openapi.json');
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  );
  return {
    operations,
    schemaOf: (schema) => (schema.$ref === undefined ? schema : (components.schemas[schemaNameOf(schema.$ref)] ?? {})),
    responseOf: (answer) =>
      answer.$ref === undefined ? answer : (components.responses[schemaNameOf(answer.$ref)] ?? {}),
  };
}

const schemaNameOf = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

/** Each word is in the method, the path or the summary. */
export function matchingOperations(operations: readonly ApiOperation[], text: string): readonly ApiOperation[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return operations.filter(({ method, path, summary = '' }) => {
    const searched = `${method} ${path} ${summary}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

/** `string or null`, `list of Document`. */
export function typeWordsOf(schema: ApiSchema): string {
  const { $ref, oneOf, anyOf, allOf, items, format, type } = schema;
  if ($ref !== undefined) return schemaNameOf($ref);
  const either = oneOf ?? anyOf;
  if (either !== undefined) return either.map(typeWordsOf).join(' or ');
  if (allOf !== undefined) return allOf.map(typeWordsOf).join(' with ');
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (items !== undefined) return `list of ${typeWordsOf(items)}`;
  const types = typeof type === 'string' ? [type] : (type ?? []);
  return types.map((each) => wordOf(each === 'string' ? (format ?? each) : each)).join(' or ') || 'any value';
}

/** Types of the schema file by those of JSON Schema. */
const SHOWN_TYPES: Readonly<Record<string, string>> = {
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  uuid: 'id',
  'date-time': 'datetime',
  'partial-time': 'time',
  byte: 'bytes',
  int64: 'bigint',
};
const wordOf = (type: string): string => SHOWN_TYPES[type] ?? type;
