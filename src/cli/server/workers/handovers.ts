/**
 * Connections that the primary has handed to a worker and that the worker has not accepted yet. Node
 * waits for the worker's message even after the worker has died, and the client would wait for ever
 * (issue 7006 of nodejs/node-v0.x-archive, for 0.11 and still today). So the primary reports in the
 * name of a dead worker that it refused these connections, as a stopping worker does. Node then hands
 * them to another worker.
 *
 * INVARIANT: unknown messages pass unchanged. If a later Node sends other messages, its own
 * behaviour remains.
 */
import type { Worker } from 'node:cluster';

/** A message of Node's cluster between the primary and a worker. */
interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  /** The `seq` of the answered message. */
  readonly ack?: number;
}
interface Handover {
  close(): void;
}

/** @param isServed whether another worker accepts connections */
export function returnHandovers(worker: Worker, isServed: () => boolean): void {
  const { process: child } = worker;
  const waiting = new Map<number, Handover>();
  const send = child.send.bind(child) as (...args: readonly unknown[]) => boolean;
  child.send = (message: ClusterMessage, connection: unknown, ...rest: readonly unknown[]): boolean => {
    if (message.act === 'newconn' && message.seq !== undefined) waiting.set(message.seq, connection as Handover);
    return send(message, connection, ...rest);
  };
  child.on('internalMessage', ({ ack }: ClusterMessage) => {
    if (ack !== undefined) waiting.delete(ack);
  });
  let isDisconnected = false;
  child.once('disconnect', () => {
    isDisconnected = true;
  });
  // The worker has ended, and its messages have been read.
  child.once('close', () =>
    setImmediate(() => {
      // Node omits the event if a connection was being handed over, and would continue to use the worker.
      if (!isDisconnected) child.emit('disconnect');
      for (const [seq, connection] of waiting) {
        if (isServed()) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false });
        else connection.close();
      }
    }),
  );
}
