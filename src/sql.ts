/**
 * The only way to make SQL: fragments of the `sql` tag. A value becomes a typed parameter, or a
 * `typedLiteral` if the program or the schema states it; a name goes through `ident`. Request input
 * reaches the database only as parameters. `text` numbers the parameters; equal shapes have equal
 * text, so the text identifies a statement.
 */
type ElementType =
  | 'text'
  | 'uuid'
  | 'int8'
  | 'float8'
  | 'numeric'
  | 'bool'
  | 'date'
  | 'timestamptz'
  | 'jsonb'
  | 'bytea';
export type SqlType = ElementType | `${ElementType}[]`;

export class Param {
  readonly type: SqlType;
  readonly value: unknown;
  constructor(type: SqlType, value: unknown) {
    this.type = type;
    this.value = value;
  }
}

export class Sql {
  /** Always one longer than `params`. */
  readonly chunks: readonly string[];
  readonly params: readonly Param[];
  #text: string | undefined;

  constructor(chunks: readonly string[], params: readonly Param[]) {
    this.chunks = chunks;
    this.params = params;
  }

  /** With `$1::uuid`-style placeholders. */
  get text(): string {
    if (this.#text === undefined) {
      const [first = '', ...others] = this.chunks;
      let text = first;
      for (const [i, { type }] of this.params.entries()) text += `$${i + 1}::${type}${others[i]}`;
      this.#text = text;
    }
    return this.#text;
  }

  get values(): unknown[] {
    return this.params.map((param) => param.value);
  }
}

export function sql(strings: TemplateStringsArray, ...parts: readonly (Sql | Param)[]): Sql {
  const chunks: string[] = [strings[0]!];
  const params: Param[] = [];
  parts.forEach((part, i) => {
    const after = strings[i + 1]!;
    if (part instanceof Param) {
      params.push(part);
      chunks.push(after);
    } else {
      chunks[chunks.length - 1] += part.chunks[0]!;
      params.push(...part.params);
      chunks.push(...part.chunks.slice(1));
      chunks[chunks.length - 1] += after;
    }
  });
  return new Sql(chunks, params);
}

export const param = (type: SqlType, value: unknown): Param => new Param(type, value);
export const uuid = (value: string | null): Param => param('uuid', value);
export const text = (value: string | null): Param => param('text', value);
/** An interval. */
export const seconds = (value: number): Sql => sql`${param('float8', value)} * interval '1 second'`;

/**
 * A value that is part of the text, so that a plan is made for it. For values that the program or
 * the schema states, literals of policies among them; request input is a `param`.
 */
export function typedLiteral(type: SqlType, value: unknown): Sql {
  if (!Array.isArray(value)) return raw(`${literal(value)}::${type}`);
  return raw(`ARRAY[${value.map(literal).join(', ')}]::${type}`);
}

/**
 * Quoted unless it is a plain int; its type follows. E'' reads the same under every
 * standard_conforming_strings.
 */
function literal(value: unknown): string {
  const text = String(value).replaceAll("'", "''");
  if (typeof value === 'number' && /^[0-9]+$/.test(text)) return text;
  return text.includes('\\') ? `E'${text.replaceAll('\\', '\\\\')}'` : `'${text}'`;
}

/** A quoted name. Names come from the schema, never from a request. */
export const ident = (...names: readonly string[]): Sql =>
  new Sql([names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.')], []);

/** SQL text of this program. Never call it with input of any kind. */
export const raw = (text: string): Sql => new Sql([text], []);

export const empty: Sql = raw('');

export function join(parts: readonly Sql[], separator: string): Sql {
  const chunks = [''];
  const params: Param[] = [];
  parts.forEach((part, i) => {
    chunks[chunks.length - 1] += (i > 0 ? separator : '') + part.chunks[0]!;
    params.push(...part.params);
    chunks.push(...part.chunks.slice(1));
  });
  return new Sql(chunks, params);
}
