/**
 * A connection of the driver that gathers the messages of a statement and sends them in one write,
 * without asking for a description of the rows: their cells stay text, so nobody reads it. The
 * driver writes each message by itself.
 */

export interface MessageStream {
  readonly writable: boolean;
  write(bytes: Buffer): unknown;
}

interface Gathering {
  readonly stream: { cork(): void; uncork(): void };
  _send(message: Buffer): void;
  describe(): void;
}

export interface OneWrite<C> {
  /** To be given to the driver. */
  readonly connection: C;
  send(): void;
  /** What was gathered is not sent. */
  drop(): void;
}

export function oneWriteOf<C extends { readonly stream: MessageStream }>(connection: C): OneWrite<C> {
  const messages: Buffer[] = [];
  const drop = (): void => {
    messages.length = 0;
  };
  const send = (): void => {
    const { stream } = connection;
    if (stream.writable && messages.length > 0) stream.write(Buffer.concat(messages));
    drop();
  };
  const gathering: Gathering = {
    stream: { cork: () => undefined, uncork: () => undefined },
    _send: (message) => void messages.push(message),
    describe: () => undefined,
  };
  return { connection: Object.assign(Object.create(connection) as C, gathering), send, drop };
}
