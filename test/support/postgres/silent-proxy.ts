/**
 * A TCP door in front of a server. `silence` makes the connections that are open go dead without a
 * word, as a lost host does; new ones work. `hold` makes them slow, `replaceNext` loses an answer, `cutAfter` a part of one.
 */
import { createServer, connect as dial, type Socket } from 'node:net';

export class SilentProxy {
  /** The address of the database, through the proxy. */
  readonly url: string;
  readonly #close: () => Promise<void>;
  readonly #pairs: Set<readonly Socket[]>;

  private constructor(url: string, pairs: Set<readonly Socket[]>, close: () => Promise<void>) {
    this.url = url;
    this.#pairs = pairs;
    this.#close = close;
  }

  /** @param connectMs milliseconds until the server gets the first bytes of a connection */
  static async open(databaseUrl: string, connectMs = 0): Promise<SilentProxy> {
    const target = new URL(databaseUrl.replace('@/', '@localhost/'));
    const folder = target.searchParams.get('host');
    const port = target.port === '' ? 5432 : Number(target.port);
    const pairs = new Set<readonly Socket[]>();
    const server = createServer((client) => {
      const upstream = folder === null ? dial(port, target.hostname) : dial(`${folder}/.s.PGSQL.${port}`);
      pairs.add([client, upstream]);
      if (connectMs > 0) setTimeout(() => client.resume(), connectMs);
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        from.on('data', (bytes) => to.write(bytes));
        from.on('error', () => undefined);
        from.on('close', () => to.destroy());
      }
      if (connectMs > 0) client.pause();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address() as { readonly port: number };
    target.searchParams.delete('host');
    target.host = `127.0.0.1:${address.port}`;
    return new SilentProxy(target.href, pairs, async () => {
      for (const socket of [...pairs].flat()) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
  }

  /** Returns how many connections went dead. Their statements on the server end. */
  silence(): number {
    const count = this.#pairs.size;
    for (const [client, upstream] of this.#pairs) {
      for (const socket of [client!, upstream!]) socket.removeAllListeners('data').removeAllListeners('close');
      client!.resume();
      upstream!.destroy();
    }
    this.#pairs.clear();
    return count;
  }

  /** Holds the server's messages until the returned function is called. */
  hold(): () => void {
    const upstreams = [...this.#pairs].map(([, upstream]) => upstream!);
    for (const upstream of upstreams) upstream.pause();
    return () => {
      for (const upstream of upstreams) upstream.resume();
    };
  }

  /** The next that the server sends is lost: the clients get this in its place, and their connections end, or stay. */
  replaceNext(bytes: Buffer, { stays = false } = {}): void {
    for (const [client, upstream] of this.#pairs)
      upstream!.removeAllListeners('data').once('data', () => {
        if (!stays) client!.end(bytes);
        else {
          client!.write(bytes);
          upstream!.on('data', (later) => client!.write(later));
        }
      });
  }

  /** The connections that are open are lost once that end has sent so many more bytes, of which the other gets no more. */
  cutAfter(bytes: number, sender: 'service' | 'server'): void {
    for (const [client, upstream] of this.#pairs) {
      const [from, to] = sender === 'service' ? [client!, upstream!] : [upstream!, client!];
      let left = bytes;
      from.removeAllListeners('data').on('data', (chunk) => {
        if (chunk.length < left) to.write(chunk);
        else {
          to.end(chunk.subarray(0, left));
          from.destroy();
        }
        left -= chunk.length;
      });
    }
  }

  close(): Promise<void> {
    return this.#close();
  }
}
