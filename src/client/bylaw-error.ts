/** An entry of `errors`: its place (`pointer` into the body, or `parameter` of the query), the error, and its remedy. */
export interface ErrorDetail {
  /** A JSON pointer into the body: `/data/title`. */
  readonly pointer?: string;
  readonly parameter?: string;
  readonly code: string;
  readonly detail: string;
  /** The check of the schema that failed, if `code` is `check_failed`. */
  readonly check?: string;
  /** The id of a record that a write by filter may not change. */
  readonly record?: string | number;
  /** The values that can follow the stored one, if `code` is `transition_refused` and the caller may read it. */
  readonly possible?: readonly (string | number)[];
  /** In a text: where the error begins and how long it is, in UTF-16 units. */
  readonly offset?: number;
  readonly length?: number;
  /** A replacement that was itself checked. */
  readonly fix?: { readonly offset: number; readonly length: number; readonly replacement: string };
}

/** The body of an error (RFC 9457). */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly code: string;
  readonly request_id?: string;
  readonly operation?: number;
  readonly errors?: readonly ErrorDetail[];
}

/**
 * A rejection by the service. `code` is stable and documented; `message` is for people. `Code`: the codes that the program knows,
 * such as `ErrorCode` of `bylaw types`.
 */
export class BylawError<Code extends string = string> extends Error {
  readonly status: number;
  readonly code: Code;
  readonly errors: readonly ErrorDetail[];
  readonly requestId: string | undefined;
  /** The index of the operation that failed in a batch. */
  readonly operation: number | undefined;
  /** Seconds to wait before trying again, if the service sent `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor(problem: ProblemDocument, retryAfter?: number) {
    super(problem.detail ?? problem.title);
    this.name = 'BylawError';
    this.status = problem.status;
    this.code = problem.code as Code;
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id;
    this.operation = problem.operation;
    this.retryAfter = retryAfter;
  }

  /** The first message for each field of `data`, or of a form without it, by the field's name, as forms show it. */
  get fields(): Readonly<Record<string, string>> {
    const fields: Record<string, string> = Object.create(null);
    for (const { pointer, detail } of this.errors) {
      const name = pointer
        ?.match(/^\/data\/([^/]+)|^\/([^/]+)$/)
        ?.slice(1)
        .find((each) => each !== undefined)
        ?.replaceAll('~1', '/')
        .replaceAll('~0', '~');
      if (name !== undefined && pointer !== '/data') fields[name] ??= detail;
    }
    return fields;
  }
}

/** True for a rejection by the service: `isBylawError<ErrorCode>(error)`. */
export const isBylawError = <Code extends string = string>(error: unknown): error is BylawError<Code> =>
  error instanceof BylawError;

/**
 * A response other than 2xx → the error. A body that is not a problem document (a proxy's page) still
 * gives a status.
 */
export async function errorOf(response: Response): Promise<BylawError> {
  const after = Number(response.headers.get('retry-after') ?? Number.NaN);
  const fallback: ProblemDocument = {
    type: 'about:blank',
    title: response.statusText || `HTTP ${response.status}`,
    status: response.status,
    code: 'http_error',
  };
  const body = (await response.json().catch(() => undefined)) as Partial<ProblemDocument> | null | undefined;
  const problem = typeof body?.code === 'string' ? { ...fallback, ...body } : fallback;
  return new BylawError(problem, Number.isFinite(after) ? after : undefined);
}
