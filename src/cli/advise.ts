/** `bylaw advise`: the indexes that list rules, filters and sorts lack; with a database, what they would save. */
import { type Config, ConfigError, readConfig } from '../config.ts';
import { principalOf } from '../explain/principal.ts';
import type { PolicyRequest } from '../policy/types.ts';
import { datetimeOf } from '../policy/values.ts';
import { Problem } from '../problem.ts';
import { Store } from '../records/access-context.ts';
import type { Schema } from '../schema/model/model.ts';
import { openConfiguredDatabase } from '../service/configured-database.ts';
import { adviceDocument, adviceLines, type IndexAdvice } from '../workbench/advise/advice-document.ts';
import { hasIndex, measureIndex } from '../workbench/advise/measure-index.ts';
import { indexesMissing, type MissingIndex } from '../workbench/advise/missing-indexes.ts';
import type { Arguments, Command, Io } from './support/command.ts';
import { requireSchema } from './support/workspace.ts';

export const command: Command = {
  name: 'advise',
  summary: 'names the indexes that list rules, filters and sorts lack; with a database, what each would save',
  settings: ['schema', 'databaseUrl'],
  flags: {
    caller: {
      value: 'EMAIL',
      about: 'measures the lists of this user',
      default: 'a user with every role and no records',
    },
    json: { about: 'prints one JSON document' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const config = readConfig(args.flags, io.env);
  const schema = requireSchema(config.schema, io, () => false);
  if (config.databaseUrl === undefined && args.has('caller'))
    throw new ConfigError(['--caller: measures lists, so it needs --database-url']);
  const missing = indexesMissing(schema);
  const advice =
    config.databaseUrl === undefined
      ? missing.map((each) => ({ missing: each }))
      : await measuredAdvice(missing, { schema, config, caller: args.get('caller'), cwd: io.cwd });
  if (args.has('json')) io.stdout.write(`${JSON.stringify(adviceDocument(advice), undefined, 2)}\n`);
  else io.stdout.write(`${adviceLines(advice).join('\n')}\n`);
  return advice.length === 0 ? 0 : 1;
}

interface Measuring {
  readonly schema: Schema;
  readonly config: Config;
  readonly caller: string | undefined;
  readonly cwd: string;
}

async function measuredAdvice(
  missing: readonly MissingIndex[],
  { schema, config, caller, cwd }: Measuring,
): Promise<readonly IndexAdvice[]> {
  const db = await openConfiguredDatabase(config, cwd);
  try {
    const store = new Store(db, schema);
    const request = await measuringRequest(store, caller);
    const advice: IndexAdvice[] = [];
    for (const each of missing)
      if (!(await hasIndex(db, each)))
        advice.push({ missing: each, measured: await measureIndex(store, each, request) });
    return advice;
  } finally {
    await db.close();
  }
}

const NO_USER = '00000000-0000-0000-0000-000000000000';

/** Throws ConfigError. */
async function measuringRequest(store: Store, caller: string | undefined): Promise<PolicyRequest> {
  const now = datetimeOf(new Date());
  if (caller === undefined) return { auth: { id: NO_USER, roles: [...store.schema.roles.keys()] }, query: {}, now };
  try {
    const found = await principalOf(store, { kind: 'user', name: caller });
    return { ...found, query: {}, now };
  } catch (error) {
    if (error instanceof Problem) throw new ConfigError([`--caller: ${error.message}`]);
    throw error;
  }
}
