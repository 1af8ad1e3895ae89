/** `bylaw user add | roles | email | disable | enable | second-factor`. */
import { text } from 'node:stream/consumers';
import type { Administration, User } from '../../auth/auth.ts';
import { ConfigError } from '../../config.ts';
import { Problem } from '../../problem.ts';
import {
  type Arguments,
  type Command,
  type CommandGroup,
  DATABASE_SETTINGS,
  type Flags,
  type Io,
} from '../support/command.ts';
import { openWorkspace } from '../support/workspace.ts';

type ChangeOfUser = (admin: Administration, args: Arguments, io: Io) => Promise<User>;

interface UserCommand {
  readonly verb: string;
  readonly summary: string;
  readonly flags?: Flags;
  /** Throws ConfigError, before the database is opened. */
  readonly validate?: (args: Arguments) => void;
  readonly change: ChangeOfUser;
}

export const command: CommandGroup = {
  name: 'user',
  summary: 'adds users, changes their roles and addresses, disables and enables them, resets second factors',
  commands: [
    userCommand({
      verb: 'add',
      summary: 'adds a user with a verified email address',
      flags: {
        role: { value: 'ROLE', repeated: true, about: 'a role of the user' },
        'password-stdin': { about: 'reads the password from standard input (required)' },
      },
      validate: requirePasswordFlag,
      change: addNamedUser,
    }),
    userCommand({
      verb: 'roles',
      summary: 'changes the roles of a user',
      flags: {
        add: { value: 'ROLE', repeated: true, about: 'gives this role' },
        remove: { value: 'ROLE', repeated: true, about: 'takes this role away' },
      },
      validate: requireRoleChange,
      change: (admin, args) =>
        admin.changeRoles(emailArgument(args), { add: args.all('add'), remove: args.all('remove') }),
    }),
    userCommand({
      verb: 'email',
      summary: 'changes the email address of a user, ends all sessions, and informs the old address',
      flags: { to: { value: 'ADDRESS', about: 'the new address, which counts as verified (required)' } },
      validate: requireAddress,
      change: (admin, args) => admin.changeEmail(emailArgument(args), args.get('to')!),
    }),
    userCommand({
      verb: 'disable',
      summary: 'ends all sessions of a user and rejects new logins',
      change: (admin, args) => admin.setDisabled(emailArgument(args), true),
    }),
    userCommand({
      verb: 'enable',
      summary: 'lets a disabled user log in again',
      change: (admin, args) => admin.setDisabled(emailArgument(args), false),
    }),
    userCommand({
      verb: 'second-factor',
      summary: 'removes the second factor of a user who has lost it',
      flags: { reset: { about: 'removes it, with its recovery codes (required)' } },
      validate: requireReset,
      change: (admin, args) => admin.resetSecondFactor(emailArgument(args)),
    }),
  ],
};

function userCommand({ verb, summary, flags, validate, change }: UserCommand): Command {
  return {
    name: `user ${verb}`,
    summary,
    positionals: ['EMAIL'],
    settings: DATABASE_SETTINGS,
    flags,
    async run(args, io) {
      validate?.(args);
      const workspace = await openWorkspace(args, io, { writes: true });
      try {
        const user = await change(workspace.auth.admin, args, io);
        io.stdout.write(`${JSON.stringify(user)}\n`);
        return 0;
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        io.stderr.write(`bylaw user ${verb}: ${error.message}\n`);
        return 1;
      } finally {
        await workspace.close();
      }
    },
  };
}

const emailArgument = ({ positionals }: Arguments): string => positionals[0]!;

async function addNamedUser(admin: Administration, args: Arguments, io: Io): Promise<User> {
  const password = (await text(io.stdin)).replace(/\r?\n$/, '');
  return admin.addUser({ email: emailArgument(args), password, roles: args.all('role') });
}

function requirePasswordFlag(args: Arguments): void {
  if (args.has('password-stdin')) return;
  throw new ConfigError([
    'expected --password-stdin: the password is read from standard input, as other users of the machine could read it from the command line',
  ]);
}

function requireAddress(args: Arguments): void {
  if (!args.has('to')) throw new ConfigError(['expected --to ADDRESS, the new address']);
}

function requireReset(args: Arguments): void {
  if (!args.has('reset')) throw new ConfigError(['expected --reset, which removes the second factor']);
}

function requireRoleChange(args: Arguments): void {
  if (!args.has('add') && !args.has('remove')) throw new ConfigError(['expected --add ROLE or --remove ROLE']);
}
