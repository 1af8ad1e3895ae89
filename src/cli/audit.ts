/** `bylaw audit`: who logged in, from where, what failed, which roles and keys changed. Newest last, as a log is read. */
import type { AuditRow } from '../auth/auth.ts';
import { ConfigError, readArguments } from '../config.ts';
import { type Io, reportingConfigErrors } from './command.ts';
import { openWorkspace, WORKSPACE_FLAGS } from './open.ts';

const FLAGS = {
  ...WORKSPACE_FLAGS,
  user: { value: 'EMAIL' },
  event: { value: 'EVENT' },
  limit: { value: 'N' },
  json: {},
} as const;
const DEFAULT_LIMIT = '100';

export const command = reportingConfigErrors({
  name: 'audit',
  summary: 'what happened to accounts [--user EMAIL] [--event EVENT] [--limit N] [--json]',
  run,
});

async function run(argv: readonly string[], io: Io): Promise<number> {
  const flags = readArguments(argv, FLAGS);
  if (flags.positionals.length > 0) throw new ConfigError([`unexpected argument \`${flags.positionals[0]}\``]);
  const limit = flags.get('limit') ?? DEFAULT_LIMIT;
  if (!/^[1-9]\d{0,5}$/.test(limit)) throw new ConfigError(['--limit: expected a whole number from 1 to 999999']);
  const workspace = await openWorkspace(io, flags);
  try {
    const email = flags.get('user');
    const event = flags.get('event');
    const rows = await workspace.auth.admin.audit({
      ...(email === undefined ? {} : { email }),
      ...(event === undefined ? {} : { event }),
      limit: Number(limit),
    });
    const print = flags.has('json') ? (row: AuditRow) => JSON.stringify(row) : lineOf;
    for (const row of rows.toReversed()) io.stdout.write(`${print(row)}\n`);
    return 0;
  } finally {
    await workspace.close();
  }
}

/** Texts that strangers chose go through JSON: no control character reaches a terminal. */
function lineOf({ at, event, email, user_id, actor_id, session_id, ip, user_agent, detail }: AuditRow): string {
  const parts = {
    user: email ?? user_id,
    by: actor_id,
    session: session_id,
    from: ip,
    with: user_agent,
    ...detail,
  };
  const told = Object.entries(parts).filter(([, value]) => value !== null && value !== undefined);
  return [
    at,
    event.padEnd(22),
    ...told.map(
      ([name, value]) =>
        `${name}=${typeof value === 'string' && /^[\w@.:+-]+$/.test(value) ? value : JSON.stringify(value)}`,
    ),
  ].join(' ');
}
