/**
 * The open connections of a server, of which there are at most so many. One more takes the place of
 * the one that has waited longest for a request, its first or its next: whoever sends nothing, or a
 * head that never ends, keeps nobody out. Where all are being served, the new one is closed.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export class Connections {
  readonly #most: number;
  readonly #open = new Set<Socket>();
  /** No head of a request is complete; who waits longest is first. */
  readonly #waiting = new Set<Socket>();
  /** How many requests of a connection are being served. */
  readonly #serving = new Map<Socket, number>();

  constructor(server: Server, most: number) {
    this.#most = most;
    server.on('connection', (socket: Socket) => this.#admit(socket));
  }

  begin(socket: Socket): void {
    const count = this.#serving.get(socket) ?? 0;
    this.#serving.set(socket, count + 1);
    if (count === 0) this.#waiting.delete(socket);
  }

  end(socket: Socket): void {
    const count = this.#serving.get(socket) ?? 0;
    if (count > 1) {
      this.#serving.set(socket, count - 1);
      return;
    }
    this.#serving.delete(socket);
    if (this.#open.has(socket)) this.#waiting.add(socket);
  }

  #admit(socket: Socket): void {
    if (this.#open.size >= this.#most) {
      const [longest] = this.#waiting;
      if (longest !== undefined) this.#forget(longest);
      (longest ?? socket).destroy();
      if (longest === undefined) return;
    }
    this.#open.add(socket);
    this.#waiting.add(socket);
    socket.once('close', () => this.#forget(socket));
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#waiting.delete(socket);
  }
}
