/** A fault that a compiler may have, as a change of the text of a copy of it. */
export interface Fault {
  readonly name: string;
  readonly file: string;
  /** A regular expression, so that formatting does not matter. */
  readonly find: RegExp;
  readonly put: string;
  /** Why no policy, request and row can show it. */
  readonly equivalent?: string;
}

export const fault = (file: string, name: string, find: RegExp, put: string): Fault => ({ file, name, find, put });
