/**
 * `bylaw explain`: what the rules of an action become for a caller, as a condition and, given a
 * record or a write, clause by clause.
 */
import { keyFinder } from '../auth/api-keys/asked-key.ts';
import { ConfigError } from '../config.ts';
import { readAsked } from '../explain/asked.ts';
import { printTrace } from '../explain/print-trace.ts';
import { inTimeOf, questionOf } from '../explain/question.ts';
import { type Trace, traceOf } from '../explain/trace.ts';
import { traceDocument } from '../explain/trace-document.ts';
import { Problem } from '../problem.ts';
import { Store } from '../records/access-context.ts';
import { Refusal } from '../refusal.ts';
import { type Arguments, type Command, DATABASE_SETTINGS } from './support/command.ts';
import type { IssueFilter } from './support/schema-file.ts';
import { type OpenDatabase, openDatabaseFor, readingTables } from './support/workspace.ts';

export const command: Command = {
  name: 'explain',
  summary: 'shows what the rules of an action become: verdict, residual, which clause decides, SQL, plan',
  positionals: ['COLLECTION', 'ACTION'],
  settings: DATABASE_SETTINGS,
  flags: {
    as: {
      value: 'CALLER',
      about:
        'an email, an id, `guest`, an API key as \'{"key":"ID"}\', or a made-up caller such as \'{"roles":["editor"]}\'',
      default: 'nobody, whom every route answers with 401',
    },
    record: {
      value: '[ID]',
      about:
        'also shows which clause decides about this record, and why; without an ID: about the record that a create makes',
    },
    query: { value: 'k=v', repeated: true, about: 'a parameter of the query string' },
    set: { value: 'JSON', about: 'what a create or update sends under `data`', default: 'nothing changes' },
    filter: { value: 'TEXT', about: 'the filter of a list, judged for the record' },
    params: { value: 'JSON', about: 'the params of the filter' },
    json: { about: 'prints one JSON document' },
  },
  async run(args, io) {
    const opened = await openDatabaseFor(args, io, { writes: false, isShown: isOfQuestion(args) });
    try {
      const trace = await readingTables(opened, () => traced(args, opened));
      const text = args.has('json') ? JSON.stringify(traceDocument(trace), undefined, 2) : printTrace(trace).join('\n');
      io.stdout.write(`${text}\n`);
      return 0;
    } finally {
      await opened.close();
    }
  },
};

/** Throws ConfigError with all issues. */
async function traced(args: Arguments, { db, schema }: OpenDatabase): Promise<Trace> {
  const store = new Store(db, schema);
  try {
    const asked = readAsked(bodyOf(args), schema);
    return await inTimeOf(store, async (q) =>
      traceOf(await questionOf(asked, { store, q, asker: null, findKey: keyFinder(db, schema) })),
    );
  } catch (error) {
    if (error instanceof Problem || error instanceof Refusal) throw new ConfigError(issueLinesOf(error));
    throw error;
  }
}

/** The arguments in the form that the route takes. */
function bodyOf(args: Arguments): object {
  const [collection, action] = args.positionals;
  const record = args.get('record');
  return {
    collection,
    action,
    ...(args.has('as') && { as: callerArgument(args.get('as')!) }),
    ...(record !== undefined && { id: record === '' ? null : record }),
    ...(args.has('set') && { data: jsonOrText(args.get('set')!) }),
    ...(args.has('query') && { query: queryArgument(args.all('query')) }),
    ...(args.has('filter') && { filter: args.get('filter') }),
    ...(args.has('params') && { params: jsonOrText(args.get('params')!) }),
  };
}

const callerArgument = (given: string): unknown => (given.startsWith('{') ? jsonOrText(given) : given);

function jsonOrText(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function queryArgument(pairs: readonly string[]): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null);
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new ConfigError([`--query: expected k=v, not \`${pair}\``]);
    const [key, value] = [pair.slice(0, at), pair.slice(at + 1)];
    const before = query[key];
    query[key] = before === undefined ? value : [before, value].flat();
  }
  return query;
}

/** The flag that gives a key of the body; the positionals are named by themselves. */
const FLAGS: Readonly<Record<string, string>> = { id: '--record', data: '--set' };

/** Each error at its flag: `--set: /data/title: …`. */
function issueLinesOf({ message, errors }: Problem | Refusal): readonly string[] {
  if (errors.length === 0) return [message];
  return errors.map(({ pointer = '', detail }) => {
    const [, key = '', ...rest] = pointer.split('/');
    if (['', 'collection', 'action'].includes(key)) return detail;
    return `${FLAGS[key] ?? `--${key}`}: ${rest.length === 0 ? '' : `${pointer}: `}${detail}`;
  });
}

/** The warnings about the rules that the question is about: those of the action, and of members. */
function isOfQuestion({ positionals: [collection = '', action = ''] }: Arguments): IssueFilter {
  const isReading = action === 'list' || action === 'read';
  const keys = isReading ? [action, 'view'] : [action];
  const ofRecord = keys.map((key) => `collections.${collection}.access.${key}`);
  const ofMember = `.access.${isReading ? 'read' : 'write'}`;
  const isIn = (path: string, rules: string): boolean =>
    path.startsWith(rules) && ['', '.', '['].includes(path.charAt(rules.length));
  return ({ path }) => {
    if (ofRecord.some((rules) => isIn(path, rules))) return true;
    const [, named, part = '', member, ...rest] = path.split('.');
    const isOfMember = named === collection && ['fields', 'relations'].includes(part) && member !== undefined;
    return action !== 'delete' && isOfMember && isIn(`.${rest.join('.')}`, ofMember);
  };
}
