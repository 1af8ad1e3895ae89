/** The object under `data` of a write. */
export type Data = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Data =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
