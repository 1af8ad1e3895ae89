/**
 * `bylaw audit`: logins with their addresses, failures, changes of roles and keys. The newest event is
 * last, as in a log.
 */
import type { AuditRow } from '../../auth/auth.ts';
import { ConfigError } from '../../config.ts';
import { type Arguments, type Command, DATABASE_SETTINGS, type Io } from '../support/command.ts';
import { openWorkspace } from '../support/workspace.ts';

const DEFAULT_LIMIT = '100';

export const command: Command = {
  name: 'audit',
  summary: 'prints the events of accounts: logins, failures, changes of roles and keys',
  settings: DATABASE_SETTINGS,
  flags: {
    user: { value: 'EMAIL', about: 'only events of this user' },
    event: { value: 'EVENT', about: 'only events of this kind, such as login_failed' },
    limit: { value: 'N', about: 'at most so many, the newest', default: DEFAULT_LIMIT },
    json: { about: 'prints JSON, one event a line' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const limit = args.get('limit') ?? DEFAULT_LIMIT;
  if (!/^[1-9]\d{0,5}$/.test(limit)) throw new ConfigError(['--limit: expected an int from 1 to 999999']);
  const workspace = await openWorkspace(args, io, { writes: false });
  try {
    const query = { email: args.get('user'), event: args.get('event'), limit: Number(limit) };
    const rows = await workspace.auth.admin.audit(query);
    const print = args.has('json') ? (row: AuditRow) => JSON.stringify(row) : auditLine;
    for (const row of rows.toReversed()) io.stdout.write(`${print(row)}\n`);
    return 0;
  } finally {
    await workspace.close();
  }
}

function auditLine({ at, event, email, user_id, actor_id, session_id, ip, user_agent, detail }: AuditRow): string {
  const parts = { user: email ?? user_id, by: actor_id, session: session_id, from: ip, with: user_agent, ...detail };
  const known = Object.entries(parts).filter(([, value]) => value !== null && value !== undefined);
  return [at, event.padEnd(22), ...known.map(([name, value]) => `${name}=${plainOrQuoted(value)}`)].join(' ');
}

/** JSON escapes the strings of strangers: no control character reaches a terminal. */
const plainOrQuoted = (value: unknown): string =>
  typeof value === 'string' && /^[\w@.:+-]+$/.test(value) ? value : JSON.stringify(value);
