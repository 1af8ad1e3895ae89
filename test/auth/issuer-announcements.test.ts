/** Nodes that would reject each other's tokens warn once; others are silent. */
import { expect, it } from 'vitest';
import { announceIssuer } from '../../src/auth/issuer-announcements.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { hasPostgres, postgresUrl } from '../support/store-world.ts';
import { until } from '../support/until.ts';

it.runIf(hasPostgres)('nodes of one database with different base URLs warn of each other', async () => {
  const [url, elsewhere] = [await postgresUrl(), await postgresUrl()];
  const warned: Record<string, string[]> = { a: [], same: [], b: [], apart: [] };
  const start = async (name: string, databaseUrl: string, issuer: string) => {
    const db = await openDatabase({ url: databaseUrl, pipelines: 1, poolSize: 1 });
    const stop = await announceIssuer(db, issuer, (message) => warned[name]!.push(message));
    return async () => {
      await stop();
      await db.close();
    };
  };
  const ends = [
    await start('a', url, 'https://a.example'),
    await start('same', url, 'https://a.example'),
    await start('apart', elsewhere, 'https://c.example'),
    await start('b', url, 'https://b.example'),
  ];
  try {
    const haveWarned = async (): Promise<boolean> =>
      warned.a!.length > 0 && warned.b!.length > 0 && warned.same!.length > 0;
    await until('three warnings', haveWarned);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const warning = (other: string, own: string) => [
      `another node of this database has the base URL ${other}, and this one ${own}: each rejects the access tokens of the other; ` +
        'give all of them the same BASE_URL',
    ];
    expect(warned).toEqual({
      a: warning('https://b.example', 'https://a.example'),
      same: warning('https://b.example', 'https://a.example'),
      b: warning('https://a.example', 'https://b.example'),
      apart: [],
    });
  } finally {
    for (const end of ends) await end();
  }
});
