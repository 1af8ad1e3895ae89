/**
 * `npm run fixture -- TAG`: the data of a version, for test/upgrade. Runs the version as its commit has it on a PostgreSQL of its own,
 * fills it over HTTP, and writes test/upgrade/fixtures/TAG: the tables as SQL, and what must hold after an upgrade.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { startPostgres } from '../test/support/postgres.ts';
import { serve } from '../test/support/process.ts';
import { isKnown, unpack } from '../test/upgrade/earlier-version.ts';
import { FILLED_ENV, FILLED_SCHEMA, fill } from '../test/upgrade/filling.ts';

const [name] = process.argv.slice(2);
const postgres = await startPostgres();
if (name === undefined || postgres === undefined || !isKnown({ name, commit: name })) {
  console.error('usage: npm run fixture -- TAG, where git knows TAG, with the programs of PostgreSQL installed');
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'bylaw-fixture-'));
const main = unpack({ name, commit: name }, join(folder, name));
const data = join(folder, 'data');
writeFileSync(join(folder, 'bylaw.yaml'), FILLED_SCHEMA);
const place = ['--schema', join(folder, 'bylaw.yaml'), '--database-url', postgres.url, '--data', data];
const server = await serve(place, FILLED_ENV, undefined, main);
const filled = await fill(server.url);
await server.end('SIGTERM');

/** The statements of a dump, which name no schema, and change no setting of the session. */
function statementsOf(dump: string): string {
  const lines = dump.split('\n').filter((line) => !/^(?:--|\\|SET |SELECT pg_catalog\.set_config|$)/.test(line));
  return `${lines.join('\n').replaceAll('public.', '')}\n`;
}
const dump = execFileSync('pg_dump', ['--inserts', '--no-owner', '--no-privileges', postgres.url], {
  encoding: 'utf8',
  maxBuffer: 1 << 26,
});
const stored: Record<string, string> = {};
for (const entry of readdirSync(join(data, 'files'), { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (entry.isFile()) stored[relative(data, path)] = readFileSync(path, 'utf8');
}
const target = join(import.meta.dirname, '../test/upgrade/fixtures', name);
mkdirSync(target, { recursive: true });
writeFileSync(join(target, 'database.sql'), statementsOf(dump));
const expected = { made: new Date().toISOString(), ...filled, stored };
writeFileSync(join(target, 'expected.json'), `${JSON.stringify(expected, null, 2)}\n`);
rmSync(folder, { recursive: true });
await postgres.stop();
console.log(`wrote ${relative(process.cwd(), target)}`);
