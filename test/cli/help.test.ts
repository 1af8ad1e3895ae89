/** `--help` at every level, `--version`, and wrong calls, in this process. */
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { loadCommands, runCommand } from '../../src/cli/index.ts';
import { flagsOf } from '../../src/cli/support/command.ts';
import { SETTINGS } from '../../src/config.ts';

async function bylaw(...argv: readonly string[]) {
  const output = { stdout: '', stderr: '' };
  const code = await runCommand(argv, {
    stdout: { write: (text) => (output.stdout += text) },
    stderr: { write: (text) => (output.stderr += text) },
    stdin: Readable.from([]),
    env: { BYLAW_DATTA: 'x' },
    cwd: '/',
  });
  return { code, ...output };
}

const leaves = (await loadCommands()).flatMap((command) => ('commands' in command ? command.commands : [command]));

describe('help', () => {
  test('`--help` lists every command', async () => {
    const { code, stdout } = await bylaw('--help');
    expect(code).toBe(0);
    const commands = await loadCommands();
    const width = Math.max(...commands.map(({ name }) => name.length), '--version'.length);
    for (const { name, summary } of commands) expect(stdout).toContain(`  ${name.padEnd(width)}  ${summary}\n`);
  });

  test.each(leaves.map((command) => [command.name, command] as const))(
    'the help of `%s` has every flag and setting',
    async (name, command) => {
      const { code, stdout, stderr } = await bylaw(...name.split(' '), '--help');
      expect([code, stderr]).toEqual([0, '']);
      const [title, , usage] = stdout.split('\n');
      expect(title).toBe(`bylaw ${name}: ${command.summary}`);
      expect(usage).toBe(`usage: ${['bylaw', name, ...(command.positionals ?? []), '[flags]'].join(' ')}`);
      for (const [flag, { about }] of Object.entries(flagsOf(command)))
        expect(stdout.split('\n').find((line) => line.startsWith(`  --${flag} `))).toContain(`  ${about}`);
      for (const setting of command.settings) expect(stdout).toContain(SETTINGS[setting].env);
      expect((await bylaw('help', ...name.split(' '))).stdout).toBe(stdout);
    },
  );

  test('the help is aligned in columns', async () => {
    expect((await bylaw('user', 'roles', '--help')).stdout).toBe(`bylaw user roles: changes the roles of a user

usage: bylaw user roles EMAIL [flags]

flags:
  --schema FILE       the schema file: collections, roles and policies (BYLAW_SCHEMA; default: bylaw.yaml)
  --data DIR          the data folder: embedded database, local files, mails without an SMTP server (BYLAW_DATA; default: ./data)
  --database-url URL  the PostgreSQL database (15 or newer) (DATABASE_URL; default: the embedded database in the data folder)
  --add ROLE          gives this role (may be repeated)
  --remove ROLE       takes this role away (may be repeated)
`);
  });

  test('the help of a group lists its commands', async () => {
    const { stdout } = await bylaw('migrate', '--help');
    expect(stdout).toContain(
      '  migrate plan    prints the SQL, marks the steps that need `migrate apply`, and counts records that break a rule\n',
    );
    expect(stdout).toContain(
      '  migrate apply   runs the SQL: quick steps in one transaction, then the rest while the tables are in use\n',
    );
  });
});

test('`--version` prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect(await bylaw('--version')).toEqual({ code: 0, stdout: `bylaw ${version}\n`, stderr: '' });
});

test.each([
  [
    ['migrate', 'everything'],
    'bylaw migrate: unknown command `migrate everything`; expected one of `migrate plan`, `migrate apply`, `migrate status`\n',
  ],
  [
    ['migrate', 'aply'],
    'bylaw migrate: unknown command `migrate aply`; did you mean `migrate apply`?; expected one of `migrate plan`, `migrate apply`, `migrate status`\n',
  ],
  [['keys'], 'bylaw keys: expected `keys rotate`\n'],
  [
    ['explain', 'posts'],
    'bylaw explain: expected `bylaw explain COLLECTION ACTION`: ACTION is missing\n' +
      'bylaw explain: unknown environment name `BYLAW_DATTA`; did you mean `BYLAW_DATA`?\n',
  ],
  [['check', '--jsn'], 'bylaw check: unknown flag `--jsn`; did you mean `--json`?\n'],
] as [string[], string][])('`bylaw %j` is reported as a wrong call', async (argv, stderr) => {
  expect(await bylaw(...argv)).toEqual({ code: 2, stdout: '', stderr });
});
