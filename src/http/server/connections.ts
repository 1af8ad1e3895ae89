/**
 * The open connections of a server, up to a limit. At the limit, a new connection takes the place
 * of the one that has waited longest for its first request, so silent clients and endless heads
 * keep nobody out, and clients that keep a connection stay connected. An idle connection is closed
 * only while few wait for their first request, because new clients need time to send it. If every
 * connection is being served, the new one is closed.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** The share of all places that connections without a request may take from idle ones. */
const NEW_SHARE = 1 / 8;

export class Connections {
  readonly #most: number;
  readonly #open = new Set<Socket>();
  /** No head of a request was complete yet; who waits longest is first. */
  readonly #new = new Set<Socket>();
  /** Between requests; who waits longest is first. */
  readonly #idle = new Set<Socket>();
  /** How many requests are being served of a connection that has sent several. */
  readonly #several = new Map<Socket, number>();

  constructor(server: Server, most: number) {
    this.#most = most;
    server.on('connection', (socket: Socket) => this.#admit(socket));
  }

  begin(socket: Socket): void {
    const isFirst = this.#idle.delete(socket) || this.#new.delete(socket);
    if (isFirst || !this.#open.has(socket)) return;
    this.#several.set(socket, (this.#several.get(socket) ?? 1) + 1);
  }

  end(socket: Socket): void {
    if (!this.#open.has(socket)) return;
    const count = this.#several.get(socket);
    if (count === undefined) this.#idle.add(socket);
    else if (count > 2) this.#several.set(socket, count - 1);
    else this.#several.delete(socket);
  }

  #admit(socket: Socket): void {
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
