/** Holds a row changed in an open transaction until it is killed. */
import { openDatabase } from '../../src/database/open-database.ts';
import { raw } from '../../src/sql.ts';

const db = await openDatabase({ url: process.argv[2]! });
await db.transaction(async (tx) => {
  await tx.run(raw('UPDATE counters SET n = 1000 WHERE id = 1'));
  process.stdout.write('held\n');
  await new Promise((resolve) => setTimeout(resolve, 60_000));
});
