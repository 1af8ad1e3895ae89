/** `bylaw explain`: what the rules of an action come to for a caller, as a condition and, given a record, clause by clause. */
import { type Arguments, ConfigError, readArguments } from '../config.ts';
import { decide } from '../policy/access.ts';
import { type Clause, explain } from '../policy/analyse/explain.ts';
import { needsOf } from '../policy/analyse/needs.ts';
import { ACTIONS, type Action, type Policy, type PolicyRequest, type Related, type Row } from '../policy/types.ts';
import { parseUuid } from '../policy/values.ts';
import type { Collection, Schema } from '../schema/model.ts';
import { ident, param, type Sql, sql } from '../sql.ts';
import type { Database } from '../store/database/contract.ts';
import { Store } from '../store/records/access-context.ts';
import { loadRelated } from '../store/records/related.ts';
import { findSystem } from '../store/records/system.ts';
import type { Command } from './command.ts';
import { openDatabaseFor, WORKSPACE_FLAGS } from './open.ts';

const FLAGS = {
  ...WORKSPACE_FLAGS,
  as: { value: 'EMAIL' },
  record: { value: 'ID' },
  query: { value: 'k=v', repeated: true },
} as const;

export const command: Command = {
  name: 'explain',
  summary:
    'COLLECTION ACTION [--as EMAIL] [--record ID] [--query k=v]…: a policy, what a request leaves of it, its SQL and plan, and why it decides as it does',
  async run(argv, io) {
    const flags = readArguments(argv, FLAGS);
    const { db, schema, close } = await openDatabaseFor(io, flags);
    try {
      const question = await questionOf(flags, { db, schema });
      io.stdout.write(`${(await answerTo(question)).join('\n')}\n`);
      return 0;
    } finally {
      await close();
    }
  },
};

interface Question {
  readonly store: Store;
  readonly collection: Collection;
  readonly action: Action;
  readonly request: PolicyRequest;
  readonly record: Row | undefined;
}

async function questionOf(
  flags: Arguments,
  { db, schema }: { readonly db: Database; readonly schema: Schema },
): Promise<Question> {
  const [name = '', action = '', ...more] = flags.positionals;
  const collection = schema.collections.get(name);
  const faults = [
    ...(collection === undefined
      ? [`expected a collection (${[...schema.collections.keys()].join(', ')}), not \`${name}\``]
      : []),
    ...(ACTIONS.includes(action as Action) ? [] : [`expected an action (${ACTIONS.join(', ')}), not \`${action}\``]),
    ...more.map((word) => `unexpected argument \`${word}\``),
  ];
  if (collection === undefined || faults.length > 0) throw new ConfigError(faults);
  const store = new Store(db, schema);
  const request: PolicyRequest = {
    auth: await callerOf(store, flags.get('as')),
    query: queryOf(flags.all('query')),
    now: new Date().toISOString().replace('Z', '000Z'),
  };
  return {
    store,
    collection,
    action: action as Action,
    request,
    record: await recordOf(store, collection, flags.get('record')),
  };
}

async function callerOf(store: Store, email: string | undefined): Promise<Row | null> {
  if (email === undefined) return null;
  const [found] = await findSystem(store, store.db, {
    collection: 'users',
    where: sql`t.email = ${param('text', email.toLowerCase())}`,
  });
  if (found === undefined) throw new ConfigError([`there is no user with the email \`${email}\``]);
  const own = found.row.roles as readonly string[];
  return {
    ...found.row,
    roles: [...new Set(own.flatMap((role) => [role, ...(store.schema.roles.get(role)?.includes ?? [])]))],
  };
}

async function recordOf(store: Store, { name }: Collection, given: string | undefined): Promise<Row | undefined> {
  if (given === undefined) return undefined;
  const id = parseUuid(given);
  const [found] =
    id === undefined
      ? []
      : await findSystem(store, store.db, { collection: name, where: sql`t.id = ${param('uuid', id)}` });
  if (found === undefined) throw new ConfigError([`there is no record \`${given}\` in \`${name}\``]);
  return found.row;
}

function queryOf(pairs: readonly string[]): Record<string, string | string[]> {
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

// ---------------------------------------------------------------- the answer

async function answerTo(question: Question): Promise<readonly string[]> {
  const { collection, action, request } = question;
  const rules = collection.access[action];
  const head = `${action} of ${collection.name}, as ${request.auth === null ? 'nobody' : `${request.auth.email} (roles: ${(request.auth.roles as string[]).join(', ') || 'none'})`}`;
  if (rules.length === 0) return [head, '', 'there is no rule: nobody may'];
  const permit = decide({ rules, request });
  const told = await Promise.all(rules.map((rule, i) => ruleLines(question, rule, i)));
  const verdicts = {
    allow: 'allowed, whatever the record holds',
    deny: 'denied (403), whatever the record holds',
    depends: 'it depends on the record',
  };
  return [
    head,
    `by the request alone: ${verdicts[permit.verdict]}`,
    ...told.flat(),
    ...(await conditionLines(question)),
  ];
}

async function ruleLines(question: Question, rule: Policy, index: number): Promise<readonly string[]> {
  const { request, record, store, collection, action } = question;
  const { verdict } = rule.specialise(request);
  const lines = [
    '',
    `rule ${index + 1}: ${rule.text}`,
    `  what the request leaves: ${verdict === 'depends' ? 'a condition on the record' : verdict === 'allow' ? 'true' : 'false or unknown'}`,
  ];
  if (record === undefined) return lines;
  const related: Related = await loadRelated(
    { store, q: store.db },
    { collection: collection.name, record, needs: needsOf(rule.checked) },
  );
  const seen = {
    policy: rule,
    request,
    record,
    related,
    ...(action === 'update' || action === 'create' ? { next: record, nextRelated: related } : {}),
  };
  const { clause, sentence } = explain(seen);
  return [...lines, `  ${sentence}`, ...clauseLines(clause, 2)];
}

function clauseLines({ text, value, absent, element, parts }: Clause, depth: number): readonly string[] {
  const word = value === undefined ? 'unknown' : String(value);
  const of = element === undefined ? '' : `[${element}] `;
  const why = absent === undefined ? '' : `  (${absent})`;
  return [
    `${'  '.repeat(depth)}${word.padEnd(7)} ${of}${text.replaceAll(/\s+/g, ' ')}${why}`,
    ...parts.flatMap((part) => clauseLines(part, depth + 1)),
  ];
}

/** What a list would run. A rule that names `@next` is no condition over stored records. */
async function conditionLines({ store, collection, action, request }: Question): Promise<readonly string[]> {
  const permit = decide({ rules: collection.access[action], request });
  if (permit.verdict !== 'depends' || action === 'create') return [];
  const where: Sql = action === 'update' ? permit.update.where('t') : permit.where('t');
  const statement = sql`SELECT t.id FROM ${ident(collection.table)} AS t WHERE ${where} ORDER BY t.id LIMIT 21`;
  const plan = await store.db.rows(sql`EXPLAIN ${statement}`);
  const values = statement.values.map((value, i) => `  $${i + 1} = ${JSON.stringify(value)}`);
  return ['', 'SQL:', `  ${statement.text}`, ...values, '', 'plan:', ...plan.map(([line]) => `  ${line}`)];
}
