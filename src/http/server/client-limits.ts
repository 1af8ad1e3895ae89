/**
 * Limits what clients hold: the time for a request to arrive, the requests of one caller, and the open
 * connections.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Problem } from '../../problem.ts';

export interface ArrivalLimits {
  /** Milliseconds for a JSON body. */
  readonly bodyMs: number;
  /** Milliseconds for the rest of a body after the response. */
  readonly lingerMs: number;
}

export const ARRIVAL_LIMITS: ArrivalLimits = { bodyMs: 30_000, lingerMs: 5_000 };

/**
 * Milliseconds for a whole upload: 100 MiB at 30 KiB a second. Slower ones fail earlier, at the
 * least rate.
 */
export const MAX_REQUEST_MS = 3_600_000;

/** The limit of each caller. A browser opens 6 connections, over HTTP/2 behind a proxy some 100. */
const MAX_IN_FLIGHT = 128;

/** Counts the requests of each caller on this process, so that one program cannot take every place in the queues. */
export class InFlight {
  readonly #counts = new Map<string, number>();

  /** Counts until the response is closed. Throws `rate_limited`. */
  enter(callerId: string, response: ServerResponse): void {
    // Its client left while the session was read, and the event is over.
    if (response.closed) return;
    const count = this.#counts.get(callerId) ?? 0;
    if (count >= MAX_IN_FLIGHT) {
      const detail = `more than ${MAX_IN_FLIGHT} requests at a time; wait for answers before you send more`;
      throw new Problem('rate_limited', detail);
    }
    this.#counts.set(callerId, count + 1);
    response.on('close', () => {
      const left = (this.#counts.get(callerId) ?? 1) - 1;
      if (left === 0) this.#counts.delete(callerId);
      else this.#counts.set(callerId, left);
    });
  }
}

// ---------------------------------------------------------------- connections

/** The share of all places that connections without a request may take from idle ones. */
const NEW_SHARE = 1 / 8;

interface ServedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
}

/**
 * The open connections of a server, up to a limit. At the limit, a new connection takes the
 * place of the connection that has waited longest for its first request, so silent clients and
 * endless heads keep no other client out, and clients that keep a connection stay connected. An idle
 * connection is closed only while few wait for their first request, because new clients need time to
 * send it. If every connection is being served, the new one is closed.
 */
export class Connections {
  readonly #most: number;
  readonly #lingerMs: number;
  #accepted = 0;
  readonly #open = new Set<Socket>();
  /** Connections before the head of their first request is complete; the longest waiting is first. */
  readonly #new = new Set<Socket>();
  /** Connections between requests; the longest waiting is first. */
  readonly #idle = new Set<Socket>();
  /** Counts the requests under way on a connection that has sent several. */
  readonly #several = new Map<Socket, number>();
  /** The latest response under way on each connection; earlier ones are complete before it. */
  readonly #latest = new WeakMap<Duplex, ServerResponse>();

  /** `lingerMs`: for the rest of a body after the response. */
  constructor(server: Server, most: number, lingerMs: number) {
    this.#most = most;
    this.#lingerMs = lingerMs;
    server.on('connection', (socket: Socket) => this.#admit(socket));
  }

  /** The number of connections so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** True while a connection waits for its first request. */
  get awaitsRequests(): boolean {
    return this.#new.size > 0;
  }

  latestResponse(socket: Duplex): ServerResponse | undefined {
    return this.#latest.get(socket);
  }

  /** Counts a request until its response is closed. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const isFirst = this.#idle.delete(socket) || this.#new.delete(socket);
    if (!isFirst && this.#open.has(socket)) this.#several.set(socket, (this.#several.get(socket) ?? 1) + 1);
    this.#latest.set(socket, response);
    // A request that was destroyed has lost its socket by then.
    response.on('close', () => this.#end({ request, response, socket }));
  }

  #end({ request, response, socket }: ServedRequest): void {
    // An idle connection would otherwise keep all of its last request in memory.
    if (this.#latest.get(socket) === response) this.#latest.delete(socket);
    if (!request.complete && !socket.destroyed) this.#linger(request, socket);
    if (!this.#open.has(socket)) return;
    const count = this.#several.get(socket);
    if (count === undefined) this.#idle.add(socket);
    else if (count > 2) this.#several.set(socket, count - 1);
    else this.#several.delete(socket);
  }

  /** Closes the connection if the rest of the body does not arrive soon: a client that stalls holds little. */
  #linger(request: IncomingMessage, socket: Socket): void {
    const late = setTimeout(() => socket.destroy(), this.#lingerMs);
    for (const event of ['end', 'close'] as const) request.once(event, () => clearTimeout(late));
  }

  #admit(socket: Socket): void {
    this.#accepted++;
    if (this.#open.size >= this.#most) {
      const longest = this.#longest();
      if (longest !== undefined) this.#forget(longest);
      (longest ?? socket).destroy();
      if (longest === undefined) return;
    }
    this.#open.add(socket);
    this.#new.add(socket);
    socket.once('close', () => this.#forget(socket));
  }

  #longest(): Socket | undefined {
    const [newcomer] = this.#new;
    const [idle] = this.#idle;
    return this.#new.size >= Math.max(1, this.#most * NEW_SHARE) ? newcomer : (idle ?? newcomer);
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#new.delete(socket);
    this.#idle.delete(socket);
    this.#several.delete(socket);
  }
}
