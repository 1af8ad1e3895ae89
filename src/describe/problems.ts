/** The error responses of an operation: exactly the codes that it can answer. */
import { MAX_SHOWN_ERRORS, PROBLEMS, type ProblemCode } from '../problem.ts';
import type { Json, OperationScope, RouteOperation } from './operation.ts';

/** The errors that any request can get, on every route. */
const EVERYWHERE: readonly ProblemCode[] = [
  'malformed_request',
  'request_timeout',
  'too_large',
  'expectation_failed',
  'headers_too_large',
  'internal',
  'unavailable',
];
/** A key may be bound to addresses and to pages, and some routes are for users only. */
const CREDENTIALS: readonly ProblemCode[] = [
  'unauthenticated',
  'invalid_token',
  'forbidden',
  'cross_origin',
  'rate_limited',
];
const BODY: readonly ProblemCode[] = ['unsupported_media_type', 'too_large', 'malformed_json', 'validation_failed'];

/** The codes of the route, of its door and of its body. */
function problemsOf(operation: RouteOperation, scope: OperationScope): readonly ProblemCode[] {
  const { door, ownSite, accepts, body, problems } = operation;
  const isGuarded = door !== 'public' && door !== 'optional';
  const codes: readonly ProblemCode[] = [
    ...(isGuarded ? CREDENTIALS : []),
    ...(ownSite ? (['cross_origin'] as const) : []),
    ...(accepts === 'any' ? [] : (['not_acceptable'] as const)),
    ...(body === undefined ? [] : BODY),
    ...problems.flatMap((each) => (typeof each === 'function' ? each(scope) : [each])),
  ];
  // The order is that of the table, which is sorted by status.
  return PROBLEM_CODES.filter((code) => codes.includes(code));
}

const PROBLEM_CODES = Object.keys(PROBLEMS) as readonly ProblemCode[];

/** Shared responses, each named by the codes that it can hold: clients get a union of them to switch on. */
export class ProblemResponses {
  readonly components: Record<string, Json> = {};

  /** References by status, and `default` for the errors of every request. */
  of(operation: RouteOperation, scope: OperationScope): Json {
    const byStatus = Map.groupBy(problemsOf(operation, scope), (code) => PROBLEMS[code].status);
    const own = [...byStatus].map(([status, codes]) => [String(status), this.#reference(codes)] as const);
    return { ...Object.fromEntries(own), default: this.#reference(EVERYWHERE, 'any') };
  }

  #reference(codes: readonly ProblemCode[], name = codes.join('.')): Json {
    this.components[name] ??= problemResponse(codes);
    return { $ref: `#/components/responses/${name}` };
  }
}

function problemResponse(codes: readonly ProblemCode[]): Json {
  const schema = {
    allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: codes } } }],
  };
  const description = codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' ');
  const waits = codes.some((code) => PROBLEMS[code].status === 429 || PROBLEMS[code].status === 503);
  const headers = { 'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } } };
  return {
    description,
    ...(waits ? { headers } : {}),
    content: { 'application/problem+json': { schema } },
  };
}

/** An entry of `errors`. */
export const ERROR_SCHEMA: Json = {
  type: 'object',
  required: ['code', 'detail'],
  properties: {
    pointer: { type: 'string', description: 'Into the body (RFC 6901).' },
    parameter: { type: 'string', description: 'The query parameter or header.' },
    code: { type: 'string' },
    detail: { type: 'string' },
    check: { type: 'string', description: 'Of `check_failed`: the name of the check.' },
    record: {
      type: ['string', 'number'],
      description: 'Of a write by filter: the id of a refused record that you may read.',
    },
    possible: {
      type: 'array',
      items: { type: ['string', 'number'] },
      description: 'Of `transition_refused`: the values that can follow the stored one, if you may read it.',
    },
    offset: {
      type: 'integer',
      description: 'Of an error in the text of a filter: where it begins, in UTF-16 units.',
    },
    length: { type: 'integer' },
    fix: {
      type: 'object',
      description: 'What to write instead of a part of the text.',
      required: ['offset', 'length', 'replacement'],
      properties: {
        offset: { type: 'integer' },
        length: { type: 'integer' },
        replacement: { type: 'string' },
      },
    },
  },
};

export const PROBLEM_SCHEMA: Json = {
  type: 'object',
  description: 'Problem details (RFC 9457).',
  required: ['type', 'title', 'status', 'detail', 'code', 'request_id', 'errors'],
  properties: {
    type: { type: 'string', description: '`urn:bylaw:` and the code.' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string', description: 'For people; it can change.' },
    code: { type: 'string', enum: PROBLEM_CODES, description: 'Stable; switch on it.' },
    request_id: { type: 'string' },
    operation: { type: 'integer', description: 'Of a batch: the index of the operation that failed.' },
    errors: {
      type: 'array',
      maxItems: MAX_SHOWN_ERRORS,
      items: ERROR_SCHEMA,
    },
    error_count: { type: 'integer', description: 'The number of all errors, where `errors` holds only the first.' },
  },
};
