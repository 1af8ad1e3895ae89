// @module-tag long
/** docs/adopting.md: its statements, its draft and edits, and its tests, run against a service with the rights that it grants. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { AdoptedDatabase } from '../adopting/adopted-database.ts';
import { runPolicyTests } from '../adopting/run-policy-tests.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';

const page = await readFile(join(import.meta.dirname, '../../docs/adopting.md'), 'utf8');
const block = (name: string): string => new RegExp(`\`\`\`\\w+ ${name}\\n([\\s\\S]*?)\`\`\``).exec(page)![1]!;
const ROWS = `
  INSERT INTO shop.customers (name, contact_email, password_hash) VALUES ('Ann', 'ann', 'x'), ('Eve', 'eve', 'y'), ('Bob', NULL, NULL);
  INSERT INTO shop.invoices (customer_no, total, state) VALUES (1, 10, 'open'), (1, 20, 'paid'), (3, 30, 'open');`;

describe.skipIf(inject('postgresUrl') === '')('docs/adopting.md', () => {
  const shop = new AdoptedDatabase(['shop']);
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bylaw-adopting-'));
    await shop.start({
      owner: `${block('owner')}${ROWS}`,
      service: block('service'),
      role: 'api',
      edits: block('edits'),
    });
  });
  afterAll(async () => {
    await shop.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('the draft leaves out what the page says', () => {
    expect(`${shop.counts}\n`).toBe(block('counts'));
    expect(shop.draft).toContain('column shop.customers.password_hash: its name is that of a secret');
  });

  test('the tests of the page pass', async () => {
    const [ann, eve, clerk] = await Promise.all([shop.service.user(), shop.service.user(), shop.service.user('clerk')]);
    await shop.own('UPDATE bylaw.users SET email_verified = true');
    for (const [name, { email }] of [
      ['ann', ann!],
      ['eve', eve!],
    ] as const)
      await shop.own('UPDATE shop.customers SET contact_email = $1 WHERE contact_email = $2', [email, name]);
    const file = join(folder, 'never.test.ts');
    await writeFile(file, block('never'));
    const env = {
      ...process.env,
      BASE: shop.service.url,
      CUSTOMER: ann!.token,
      STRANGER: eve!.token,
      CLERK: clerk!.token,
    };
    const { stdout } = await promisify(execFile)(process.execPath, ['--test', file], { env }).catch((error) => error);
    expect(stdout).toMatch(/\bpass 6\n.*\bfail 0\n/s);
  });

  test('the policy tests of the page pass without the tables of the shop', async () => {
    const db = await openEmbeddedDatabase();
    const tests = block('tests');
    expect(await runPolicyTests(db, { schema: shop.schema, tests })).toBe('13 passed, 0 failed\n');
    await db.close();
  });

  test('the tables of the shop are as they were', () => shop.expectUnaltered());
});
