/** The parts of an OpenAPI 3.1 document that readers of it use. */

export interface ShownSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly oneOf?: readonly ShownSchema[];
  readonly allOf?: readonly ShownSchema[];
  readonly items?: ShownSchema;
  readonly properties?: Readonly<Record<string, ShownSchema>>;
  readonly required?: readonly string[];
  readonly readOnly?: boolean;
  readonly contentMediaType?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly minProperties?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  /** The collection of the record whose id it is. */
  readonly 'x-collection'?: string;
  /** Rules of its own decide about callers who set it. */
  readonly 'x-guarded'?: boolean;
}
export type Content = Readonly<Record<string, { readonly schema?: ShownSchema; readonly example?: unknown }>>;
export interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly headers?: Readonly<Record<string, { readonly description?: string }>>;
  readonly content?: Content;
}
export interface ShownParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: ShownSchema;
}
export interface ShownOperation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters?: readonly ShownParameter[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, Response>>;
}
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, ShownSchema>>;
    readonly responses?: Readonly<Record<string, Response>>;
  };
}

/** `#/components/schemas/Post` → `Post` */
export const nameOfRef = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

/** The body of a create in a collection. */
export function createBodyOf(collection: string, { paths }: ApiDocument): ShownSchema | undefined {
  const create = paths[`/api/${collection}`]?.post as ShownOperation | undefined;
  return create?.requestBody?.content?.['application/json']?.schema;
}

/** The collections of the records that a body of a create must reference, by the name of the relation. */
export function neededReferences(body: ShownSchema, document: ApiDocument): Readonly<Record<string, string>> {
  const { properties = {}, required = [] } = resolved(body.properties?.data ?? {}, document);
  return Object.fromEntries(
    required.flatMap((name) => {
      const collection = properties[name]?.['x-collection'];
      return collection === undefined ? [] : [[name, collection]];
    }),
  );
}

/** Follows a reference to a schema of the document. */
export function resolved(schema: ShownSchema, { components }: ApiDocument): ShownSchema {
  return schema.$ref === undefined ? schema : (components?.schemas?.[nameOfRef(schema.$ref)] ?? {});
}
