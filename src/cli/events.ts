/** `bylaw events list | retry`: the events of webhooks that wait, or that were given up after 24 hours. */
import { ConfigError } from '../config.ts';
import { parseUuid } from '../policy/values.ts';
import type { Schema } from '../schema/model/model.ts';
import { type ListedEvent, listEvents, retryEvents } from '../webhooks/webhook-rows.ts';
import { type Arguments, type CommandGroup, DATABASE_SETTINGS, type Io } from './support/command.ts';
import { openMigratedDatabase } from './support/workspace.ts';

const WEBHOOK_FLAG = { webhook: { value: 'NAME', about: 'only events of this webhook' } };

export const command: CommandGroup = {
  name: 'events',
  summary: 'lists the events that webhooks could not deliver yet, and sends them again',
  commands: [
    {
      name: 'events list',
      summary: 'prints the events that wait or were given up, the oldest first, never their records',
      settings: DATABASE_SETTINGS,
      flags: {
        ...WEBHOOK_FLAG,
        'given-up': { about: 'only events that were given up after 24 hours' },
        json: { about: 'prints JSON, one event a line' },
      },
      run: runList,
    },
    {
      name: 'events retry',
      summary: 'sends an event again, with another 24 hours; without an ID, all that failed or were given up',
      positionals: ['[ID]'],
      settings: DATABASE_SETTINGS,
      flags: WEBHOOK_FLAG,
      run: retry,
    },
  ],
};

async function runList(args: Arguments, io: Io): Promise<number> {
  const { db, schema, close } = await openMigratedDatabase(args, io, { writes: false });
  try {
    const isGivenUp = args.has('given-up') ? true : undefined;
    const found = await listEvents(db, { webhook: webhookArgument(args, schema), isGivenUp });
    const print = args.has('json') ? (event: ListedEvent) => JSON.stringify(event) : eventLine;
    for (const event of found) io.stdout.write(`${print(event)}\n`);
    return 0;
  } finally {
    await close();
  }
}

async function retry(args: Arguments, io: Io): Promise<number> {
  const [given] = args.positionals;
  const id = given === undefined ? undefined : parseUuid(given);
  if (given !== undefined && id === undefined)
    throw new ConfigError(['expected the id of an event; `bylaw events list` prints them']);
  const { db, schema, close } = await openMigratedDatabase(args, io, { writes: true });
  try {
    const count = await retryEvents(db, webhookArgument(args, schema), id);
    if (count === 0 && id !== undefined) {
      io.stderr.write('bylaw events retry: no event has this id; `bylaw events list` prints the waiting ones\n');
      return 1;
    }
    io.stdout.write(`${count} ${count === 1 ? 'event is' : 'events are'} sent again\n`);
    return 0;
  } finally {
    await close();
  }
}

/** Throws ConfigError. */
function webhookArgument(args: Arguments, { webhooks }: Schema): string | undefined {
  const name = args.get('webhook');
  if (name === undefined || webhooks.has(name)) return name;
  throw new ConfigError([
    `--webhook: the schema has no webhook \`${name}\`; it has ${[...webhooks.keys()].join(', ')}`,
  ]);
}

function eventLine({
  id,
  webhook,
  type,
  record,
  filed_at,
  attempts,
  state,
  next_attempt_at,
  error,
}: ListedEvent): string {
  const next = next_attempt_at === null ? '' : ` next=${next_attempt_at}`;
  const why = error === null ? '' : ` (${error})`;
  return `${filed_at} ${id} ${webhook} ${type} record=${JSON.stringify(record)} ${state} attempts=${attempts}${next}${why}`;
}
