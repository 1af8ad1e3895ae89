/**
 * Connections that the primary has handed to a worker which has not taken them yet. Node waits for
 * the worker's word, also after the worker has died: the client would wait for ever (issue 7006 of
 * nodejs/node-v0.x-archive, for 0.11 and still today). So the primary reports, in the name of a
 * dead worker, that it refused what it had not taken, as a stopping worker does. Node then gives
 * the connection to another.
 *
 * INVARIANT: unknown messages pass unchanged. If a later Node sends other messages, its own
 * behaviour remains.
 */
import type { Worker } from 'node:cluster';

/** Of Node's cluster, between the primary and a worker. */
interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  /** The `seq` that is answered. */
  readonly ack?: number;
}
interface Connection {
  close(): void;
}

/** `isServed`: whether another worker takes connections. */
export function returnHandovers(worker: Worker, isServed: () => boolean): void {
  const { process: child } = worker;
  const waiting = new Map<number, Connection>();
  const send = child.send.bind(child) as (...args: readonly unknown[]) => boolean;
  child.send = (message: ClusterMessage, connection: unknown, ...rest: readonly unknown[]): boolean => {
    if (message.act === 'newconn' && message.seq !== undefined) waiting.set(message.seq, connection as Connection);
    return send(message, connection, ...rest);
  };
  child.on('internalMessage', ({ ack }: ClusterMessage) => {
    if (ack !== undefined) waiting.delete(ack);
  });
  let isDisconnected = false;
  child.once('disconnect', () => {
    isDisconnected = true;
  });
  // It has ended, and all that it said is read.
  child.once('close', () =>
    setImmediate(() => {
      // Node leaves the event out where a connection was under way, and would go on using the worker.
      if (!isDisconnected) child.emit('disconnect');
      for (const [seq, connection] of waiting) {
        if (isServed()) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false });
        else connection.close();
      }
    }),
  );
}
