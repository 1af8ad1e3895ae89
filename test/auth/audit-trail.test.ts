/** Pruning deletes events older than `audit.keep` only; a role that may not delete keeps them. */
import { v7 } from 'uuid';
import { expect, it } from 'vitest';
import { pruneAudit, recordAudit } from '../../src/auth/audit-trail.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { systemTables } from '../../src/service/system-tables.ts';
import { raw } from '../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../support/store-world.ts';

const DAY = 86_400;

it.each(KINDS)('%s: pruning deletes old events and keeps the rest', async (kind) => {
  const db = await openKind(kind);
  try {
    const schema = schemaOf('audit: { keep: 30d }\n');
    expect([schema.audit, schemaOf('{}').audit]).toEqual([{ keep: 30 * DAY }, {}]);
    await applyMigration(db, schema, { systemTables });
    for (const days of [400, 31, 29])
      await db.run(
        raw(`INSERT INTO "_auth_audit" (id, at, event)
             VALUES ('${v7({ msecs: Date.now() - days * DAY * 1_000 })}', now() - interval '${days} days', 'login')`),
      );
    await recordAudit(db, { event: 'logout' });
    const left = async () =>
      (await db.rows(raw(`SELECT event, (now()::date - at::date)::text FROM "_auth_audit" ORDER BY id`))).map((row) => [
        ...row,
      ]);
    await pruneAudit(db, schema.audit.keep!);
    expect(await left()).toEqual([
      ['login', '29'],
      ['logout', '0'],
    ]);
  } finally {
    await db.close();
  }
});
