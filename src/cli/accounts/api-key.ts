/** `bylaw api-key create | list | rotate | revoke`: keys of the operator, which end with no user. */
import { MOST_OVERLAP } from '../../auth/api-keys/key-requests.ts';
import type { ApiKeys, KeyRequest } from '../../auth/auth.ts';
import { ConfigError } from '../../config.ts';
import { datetimeOf, parseUuid } from '../../policy/values.ts';
import { type ErrorDetail, Problem } from '../../problem.ts';
import { DURATION, secondsOf } from '../../schema/file/units.ts';
import {
  type Arguments,
  type Command,
  type CommandGroup,
  DATABASE_SETTINGS,
  type Flags,
  type Io,
} from '../support/command.ts';
import { type DatabaseUse, openWorkspace } from '../support/workspace.ts';

/** Returns the objects to print, a line each. */
type KeyWork = (keys: ApiKeys, args: Arguments) => Promise<readonly object[]>;

interface KeyCommand extends DatabaseUse {
  readonly verb: string;
  readonly summary: string;
  readonly positionals: readonly string[];
  readonly flags?: Flags;
  readonly work: KeyWork;
}

export const command: CommandGroup = {
  name: 'api-key',
  summary: 'makes, lists, rotates and revokes API keys',
  commands: [
    keyCommand({
      verb: 'create',
      writes: true,
      summary: 'makes a key and prints its secret, this once',
      positionals: ['NAME'],
      flags: {
        role: { value: 'ROLE', repeated: true, about: 'a role of the key' },
        limit: {
          value: 'COLLECTION=ACTIONS',
          repeated: true,
          about: 'allows only these, such as posts=list,read or *=read',
        },
        address: { value: 'NETWORK', repeated: true, about: 'may be used from this address or range only' },
        publishable: { about: 'for pages: its bearer is a guest' },
        origin: { value: 'ORIGIN', repeated: true, about: 'of a publishable key: pages of this origin may send it' },
        expires: { value: 'TIME', about: 'a duration such as 90d, or a datetime; without it, never' },
      },
      work: async (keys, args) => [await keys.create(keyRequestOf(args))],
    }),
    keyCommand({
      verb: 'list',
      writes: false,
      summary: 'prints the keys of all users and of the operator, without their secrets',
      positionals: [],
      work: (keys) => keys.list(),
    }),
    keyCommand({
      verb: 'rotate',
      writes: true,
      summary: 'gives a key a new secret and prints it, this once',
      positionals: ['ID'],
      flags: {
        overlap: {
          value: 'DURATION',
          about: 'how long the present secret stays good, at most 7d; default: not at all',
        },
      },
      work: async (keys, args) => [await keys.rotate(idArgument(args), overlapArgument(args))],
    }),
    keyCommand({
      verb: 'revoke',
      writes: true,
      summary: 'ends a key on every server within a second',
      positionals: ['ID'],
      work: async (keys, args) => {
        await keys.revoke(idArgument(args));
        return [];
      },
    }),
  ],
};

function keyCommand({ verb, writes, summary, positionals, flags = {}, work }: KeyCommand): Command {
  return {
    name: `api-key ${verb}`,
    summary,
    positionals,
    settings: DATABASE_SETTINGS,
    flags,
    run: (args, io) => run(args, io, { verb, writes, work }),
  };
}

type KeyRun = Pick<KeyCommand, 'verb' | 'writes' | 'work'>;

async function run(args: Arguments, io: Io, { verb, writes, work }: KeyRun): Promise<number> {
  const workspace = await openWorkspace(args, io, { writes });
  try {
    for (const shown of await work(workspace.auth.apiKeys, args)) io.stdout.write(`${JSON.stringify(shown)}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    for (const line of error.errors.length === 0 ? [error.message] : error.errors.map(errorLine))
      io.stderr.write(`bylaw api-key ${verb}: ${line}\n`);
    return 1;
  } finally {
    await workspace.close();
  }
}

const errorLine = ({ pointer = '', detail }: ErrorDetail): string => `${pointer.slice(1)}: ${detail}`;

function keyRequestOf(args: Arguments): KeyRequest {
  const publishable = args.has('publishable');
  return {
    name: args.positionals[0]!,
    ...(publishable && args.all('role').length === 0 ? {} : { roles: args.all('role') }),
    publishable,
    limit: limitArgument(args),
    addresses: listOrNull(args.all('address')),
    origins: listOrNull(args.all('origin')),
    expires_at: endArgument(args.get('expires')),
  };
}

const listOrNull = (values: readonly string[]): readonly string[] | null => (values.length === 0 ? null : values);

function limitArgument(args: Arguments): KeyRequest['limit'] {
  const limit = new Map<string, readonly string[]>();
  for (const text of args.all('limit')) {
    const [name = '', actions, ...rest] = text.split('=');
    if (name === '' || actions === undefined || rest.length > 0) {
      throw new ConfigError([`--limit: expected COLLECTION=ACTIONS, such as posts=list,read; got ${text}`]);
    }
    limit.set(name, [...(limit.get(name) ?? []), ...actions.split(',')]);
  }
  return limit.size === 0 ? null : Object.fromEntries(limit);
}

function endArgument(text: string | undefined): string | null {
  if (text === undefined) return null;
  return DURATION.test(text) ? datetimeOf(new Date(Date.now() + secondsOf(text) * 1_000)) : text;
}

function idArgument({ positionals }: Arguments): string {
  const id = parseUuid(positionals[0]!);
  if (id === undefined) throw new ConfigError(['expected the id of a key; `bylaw api-key list` prints them']);
  return id;
}

function overlapArgument(args: Arguments): number {
  const text = args.get('overlap');
  if (text === undefined) return 0;
  const overlap = DURATION.test(text) ? secondsOf(text) : Number.POSITIVE_INFINITY;
  if (overlap > MOST_OVERLAP) throw new ConfigError(['--overlap: expected a duration of at most 7d, such as 24h']);
  return overlap;
}
