/**
 * The one way SQL comes to be: fragments made by the `sql` tag. A value becomes a typed parameter, a name goes through `ident`, and text from
 * a request can reach the database as a parameter only. `text` numbers the parameters; equal shapes have equal text, so the text is a statement's identity.
 */
export type SqlType =
  | 'text'
  | 'uuid'
  | 'int8'
  | 'float8'
  | 'bool'
  | 'timestamptz'
  | 'jsonb'
  | 'bytea'
  | 'text[]'
  | 'uuid[]'
  | 'int8[]'
  | 'float8[]'
  | 'bool[]'
  | 'timestamptz[]';

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
      let text = this.chunks[0]!;
      for (let i = 0; i < this.params.length; i++) text += `$${i + 1}::${this.params[i]!.type}${this.chunks[i + 1]!}`;
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

/** A quoted name. Names come from the schema, never from a request. */
export const ident = (...names: readonly string[]): Sql =>
  new Sql([names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.')], []);

/** SQL text of this program's own. Never call it with anything that was read. */
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
