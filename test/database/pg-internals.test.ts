/** The seams to private members of `pg` hold for the installed version. */
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { Statements } from '../../src/database/lanes/statements.ts';
import { raw, sql, text } from '../../src/sql.ts';
import { hasPostgres } from '../support/store-world.ts';

/** The minor version of `pg` that src/database/pg-internals.ts was written for. */
const PG_VERSION = '8.23';

/** The types of the messages of the protocol, in their order. */
function typesOf(bytes: Buffer): string {
  let types = '';
  for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) types += String.fromCharCode(bytes[at]!);
  return types;
}

test('the installed version of pg is the version that pg-internals was written for', () => {
  const { version } = JSON.parse(readFileSync(new URL(import.meta.resolve('pg/package.json')), 'utf8'));
  const check = [
    'Read the diff of pg/lib/{client,query,connection,utils}.js, pg-pool and pg-protocol between the two versions. Check that',
    '- Client has host, port, processID, secretKey, _queryable, _ending and connection, and Connection has stream and attachListeners,',
    '- Client calls submit and handle… of a query as `StatementBatch` has them, handleError with its connection, and pipelines subclasses of Query,',
    '- Client emits readyForQuery on its connection after the query of an error was taken off,',
    '- Connection.attachListeners emits what the Parser of pg-protocol returns, whose parse calls handlePacket,',
    '- pg/lib/utils exports prepareValue, and pg-protocol exports serialize, whose functions return the bytes of one message.',
    'Run test/database, test/routes and `npm run test:faults`. Then set PG_VERSION here.',
  ];
  expect(version.split('.').slice(0, 2).join('.'), check.join('\n')).toBe(PG_VERSION);
});

test.skipIf(!hasPostgres)(
  'a statement is one write, without a request to describe rows, and keeps its plan',
  async () => {
    const client = new pg.Client({ connectionString: inject('postgresUrl') });
    await client.connect();
    const { stream } = (client as unknown as { connection: { stream: { write(bytes: Buffer): boolean } } }).connection;
    const writes: string[] = [];
    const write = stream.write.bind(stream);
    stream.write = (bytes) => {
      writes.push(typesOf(bytes));
      return write(bytes);
    };
    try {
      const statements = new Statements();
      const ask = (value: string) => statements.send(client, sql`SELECT ${text(value)}, NULL`);
      for (const value of ['a', 'b', 'c'])
        expect(await ask(value)).toMatchObject({ rows: [[value, null]], tag: 'SELECT 1' });
      expect(writes.splice(0)).toEqual(['PBES', 'CPBES', 'BES']);
      const both = ['d', 'e'].map((value) => sql`SELECT ${text(value)}, NULL`);
      const outcomes = await statements.sendTogether(client, [raw('SELECT 0'), ...both]);
      expect(outcomes.map(({ rows }) => rows)).toEqual([[['0']], [['d', null]], [['e', null]]]);
      expect(writes.splice(0)).toEqual(['PBEBEBES']);
      expect(await statements.send(client, raw('SELECT 1'))).toMatchObject({ rows: [['1']], tag: 'SELECT 1' });
      expect(writes.splice(0)).toEqual(['Q']);
      await expect(statements.send(client, sql`SELECT ${text('x')}::int`)).rejects.toThrow('invalid input syntax');
      expect(await ask('d')).toMatchObject({ rows: [['d', null]], tag: 'SELECT 1' });
    } finally {
      await client.end();
    }
  },
);
