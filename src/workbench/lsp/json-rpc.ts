/** JSON-RPC 2.0 over two streams, framed by `Content-Length` as the Language Server Protocol has it (base protocol, 3.17). */
import { reasonOf } from '../../thrown.ts';

export interface Sink {
  write(text: string): unknown;
}
export interface RpcHandler {
  /** A result, or a promise of one. Throws RpcError. */
  request(method: string, params: unknown): unknown;
  notify(method: string, params: unknown): void;
  /** True: the connection ends. */
  readonly isEnded: boolean;
}

export class RpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
export const METHOD_NOT_FOUND = -32_601;
export const INVALID_REQUEST = -32_600;
export const NOT_INITIALIZED = -32_002;
const PARSE_ERROR = -32_700;
const INTERNAL_ERROR = -32_603;
/** A client that sends more than this in one message is not an editor of policies. */
const LONGEST_MESSAGE = 64_000_000;

const HEADER_END = Buffer.from('\r\n\r\n');

export function writeMessage(sink: Sink, message: object): void {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  sink.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

/** Resolves when the client ends the connection. The source is then destroyed, for an open one keeps the process. */
export async function serveRpc(
  source: AsyncIterable<string | Uint8Array>,
  sink: Sink,
  handler: RpcHandler,
): Promise<void> {
  let held = Buffer.alloc(0);
  for await (const chunk of source) {
    held = Buffer.concat([held, typeof chunk === 'string' ? Buffer.from(chunk) : chunk]);
    for (;;) {
      const framed = firstMessage(held);
      if (framed === undefined) break;
      held = held.subarray(framed.end);
      answer(framed.body, sink, handler);
      if (handler.isEnded) return;
    }
  }
}

/** Undefined: the message is not complete. Throws RpcError for a header without a length, after which nothing can be read. */
function firstMessage(held: Buffer): { readonly body: string; readonly end: number } | undefined {
  const at = held.indexOf(HEADER_END);
  if (at === -1) return undefined;
  const length = Number(/^content-length: *(\d+)\r?$/im.exec(held.toString('ascii', 0, at))?.[1] ?? Number.NaN);
  if (!(length <= LONGEST_MESSAGE)) throw new RpcError(PARSE_ERROR, 'expected a header with Content-Length');
  const start = at + HEADER_END.length;
  if (held.length < start + length) return undefined;
  return { body: held.toString('utf8', start, start + length), end: start + length };
}

interface RpcMessage {
  readonly id?: number | string | null;
  readonly method?: string;
  readonly params?: unknown;
}

function answer(body: string, sink: Sink, handler: RpcHandler): void {
  let message: RpcMessage;
  try {
    message = JSON.parse(body);
  } catch {
    writeMessage(sink, { id: null, error: { code: PARSE_ERROR, message: 'the message is not JSON' } });
    return;
  }
  const { id, method, params } = message;
  // A response: this server only asks the client to draw again.
  if (method === undefined) return;
  if (id === undefined || id === null) {
    handler.notify(method, params);
    return;
  }
  const fail = (error: unknown): void => {
    const code = error instanceof RpcError ? error.code : INTERNAL_ERROR;
    writeMessage(sink, { id, error: { code, message: reasonOf(error) } });
  };
  try {
    const result = handler.request(method, params);
    if (result instanceof Promise) void result.then((late) => writeMessage(sink, { id, result: late ?? null }), fail);
    else writeMessage(sink, { id, result: result ?? null });
  } catch (error) {
    fail(error);
  }
}
