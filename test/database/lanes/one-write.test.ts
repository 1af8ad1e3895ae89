/** A statement goes to PostgreSQL in one write, without a request to describe rows that nobody reads. */
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { Statements } from '../../../src/database/lanes/statements.ts';
import { raw, sql, text } from '../../../src/sql.ts';
import { hasPostgres } from '../../support/store-world.ts';

/** The types of the messages of the protocol, in their order. */
function typesOf(bytes: Buffer): string {
  let types = '';
  for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) types += String.fromCharCode(bytes[at]!);
  return types;
}

test.skipIf(!hasPostgres)('parse, bind, execute and sync are one write; the plan is kept', async () => {
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
      expect(await ask(value)).toEqual({ rows: [[value, null]], count: 1, hasWritten: false });
    expect(writes.splice(0)).toEqual(['PBES', 'CPBES', 'BES']);
    const both = ['d', 'e'].map((value) => sql`SELECT ${text(value)}, NULL`);
    const outcomes = await statements.sendTogether(client, [raw('SELECT 0'), ...both]);
    expect(outcomes.map(({ rows }) => rows)).toEqual([[['0']], [['d', null]], [['e', null]]]);
    expect(writes.splice(0)).toEqual(['PBEBEBES']);
    expect(await statements.send(client, raw('SELECT 1'))).toEqual({ rows: [['1']], count: 1, hasWritten: false });
    expect(writes.splice(0)).toEqual(['Q']);
    await expect(statements.send(client, sql`SELECT ${text('x')}::int`)).rejects.toThrow('invalid input syntax');
    expect(await ask('d')).toEqual({ rows: [['d', null]], count: 1, hasWritten: false });
  } finally {
    await client.end();
  }
});
