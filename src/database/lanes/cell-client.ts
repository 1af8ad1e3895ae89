/** A client of the driver whose rows are read by `RowReader`. */
import pg from 'pg';
import { driverOf } from './pipelined-connection.ts';
import { RowReader, type TakeBytes } from './row-reader.ts';

export class CellClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    const { connection } = driverOf(this);
    const attach = connection.attachListeners;
    // Called once it is known whether the connection is encrypted, before the first byte of an answer.
    connection.attachListeners = (stream) => {
      const before = stream.listeners('data');
      attach.call(connection, stream);
      const drivers = stream.listeners('data').filter((listener) => !before.includes(listener)) as TakeBytes[];
      const reader = new RowReader(
        (bytes) => {
          for (const take of drivers) take(bytes);
        },
        (fields) => connection.emit('dataRow', { fields }),
      );
      for (const take of drivers) stream.off('data', take);
      stream.on('data', (chunk: Buffer) => reader.read(chunk));
    };
  }
}
