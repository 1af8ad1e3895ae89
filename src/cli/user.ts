/** `bylaw user`: make users, give and take roles, shut users out and let them in again. */
import { text } from 'node:stream/consumers';
import type { Administration, User } from '../auth/auth.ts';
import { type Arguments, ConfigError, readArguments } from '../config.ts';
import { Problem } from '../problem.ts';
import { type Io, reportingConfigErrors } from './command.ts';
import { openWorkspace, WORKSPACE_FLAGS } from './open.ts';

const FLAGS = {
  ...WORKSPACE_FLAGS,
  role: { value: 'ROLE', repeated: true },
  add: { value: 'ROLE', repeated: true },
  remove: { value: 'ROLE', repeated: true },
  'password-stdin': {},
} as const;

export const command = reportingConfigErrors({
  name: 'user',
  summary:
    'user add EMAIL [--role R]… --password-stdin · user roles EMAIL --add R --remove R · user disable EMAIL · user enable EMAIL',
  run,
});

interface Call {
  readonly email: string;
  readonly flags: Arguments;
  readonly io: Io;
}
interface Verb {
  /** Beside those of every command with a database. */
  readonly flags: readonly string[];
  run(admin: Administration, call: Call): Promise<User>;
}

const VERBS: ReadonlyMap<string, Verb> = new Map<string, Verb>([
  ['add', { flags: ['role', 'password-stdin'], run: add }],
  ['roles', { flags: ['add', 'remove'], run: roles }],
  ['disable', { flags: [], run: (admin, { email }) => admin.setDisabled(email, true) }],
  ['enable', { flags: [], run: (admin, { email }) => admin.setDisabled(email, false) }],
]);

async function run(argv: readonly string[], io: Io): Promise<number> {
  const flags = readArguments(argv, FLAGS);
  const [name = '', email, ...more] = flags.positionals;
  const verb = VERBS.get(name);
  if (verb === undefined) throw new ConfigError([`expected one of ${[...VERBS.keys()].join(', ')}, not \`${name}\``]);
  if (email === undefined || more.length > 0) throw new ConfigError([`expected one email after \`${name}\``]);
  const strange = ['role', 'add', 'remove', 'password-stdin'].filter(
    (flag) => flags.has(flag) && !verb.flags.includes(flag),
  );
  if (strange.length > 0) throw new ConfigError(strange.map((flag) => `\`user ${name}\` does not take --${flag}`));
  if (name === 'add' && !flags.has('password-stdin')) {
    throw new ConfigError([
      'the password comes on standard input, with --password-stdin: on the command line others could read it',
    ]);
  }
  const workspace = await openWorkspace(io, flags);
  try {
    const user = await verb.run(workspace.auth.admin, { email, flags, io });
    io.stdout.write(`${JSON.stringify(user)}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    io.stderr.write(`bylaw user: ${error.message}\n`);
    return 1;
  } finally {
    await workspace.close();
  }
}

async function add(admin: Administration, { email, flags, io }: Call): Promise<User> {
  const password = (await text(io.stdin)).replace(/\r?\n$/, '');
  return admin.addUser({ email, password, roles: flags.all('role') });
}

function roles(admin: Administration, { email, flags }: Call): Promise<User> {
  const change = { add: flags.all('add'), remove: flags.all('remove') };
  if (change.add.length + change.remove.length === 0) throw new ConfigError(['expected --add ROLE or --remove ROLE']);
  return admin.changeRoles(email, change);
}
