/**
 * `bylaw explain`: what the rules of an action become for a caller, as a condition and, given a
 * record, clause by clause.
 */
import { ConfigError, unknownName } from '../config.ts';
import { decide } from '../policy/access.ts';
import { type Clause, explain, requestedId as idOf } from '../policy/analyse/explanation.ts';
import { policyNeedsOf } from '../policy/analyse/policy-needs.ts';
import { ACTIONS, type Action, type Policy, type PolicyRequest, type Row } from '../policy/types.ts';
import { parseUuid } from '../policy/values.ts';
import { effectiveRoles } from '../schema/effective-roles.ts';
import type { Collection } from '../schema/model.ts';
import { ident, type Sql, sql, text, uuid } from '../sql.ts';
import { Store } from '../store/records/access-context.ts';
import { heldBy, loadRelated } from '../store/records/relations/related.ts';
import { findSystem } from '../store/records/system.ts';
import type { Arguments } from './arguments.ts';
import { type Command, DATABASE_SETTINGS } from './command.ts';
import { type OpenDatabase, openDatabaseFor } from './workspace.ts';

export const command: Command = {
  name: 'explain',
  summary: 'shows what the rules of an action become: residual, SQL, plan, and which clause decides',
  positionals: ['COLLECTION', 'ACTION'],
  settings: DATABASE_SETTINGS,
  flags: {
    as: { value: 'EMAIL', about: 'the caller', default: 'nobody' },
    record: { value: 'ID', about: 'also shows which clause decides about this record, and why' },
    query: { value: 'k=v', repeated: true, about: 'a parameter of the query string' },
  },
  async run(args, io) {
    const opened = await openDatabaseFor(args, io);
    try {
      io.stdout.write(`${(await explanationOf(await questionOf(args, opened))).join('\n')}\n`);
      return 0;
    } finally {
      await opened.close();
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

async function questionOf(args: Arguments, { db, schema }: OpenDatabase): Promise<Question> {
  const [name = '', givenAction = ''] = args.positionals;
  const collection = schema.collections.get(name);
  const action = ACTIONS.find((known) => known === givenAction);
  const issues = [
    ...(collection === undefined ? [unknownOf('collection', name, [...schema.collections.keys()])] : []),
    ...(action === undefined ? [unknownOf('action', givenAction, ACTIONS)] : []),
  ];
  if (collection === undefined || action === undefined) throw new ConfigError(issues);
  const store = new Store(db, schema);
  const request: PolicyRequest = {
    auth: await callerByEmail(store, args.get('as')),
    query: queryArgument(args.all('query')),
    now: new Date().toISOString().replace('Z', '000Z'),
  };
  const record = await recordArgument(store, collection, args.get('record'));
  return { store, collection, action, request, record };
}

const unknownOf = (what: string, name: string, known: readonly string[]): string =>
  `${unknownName(what, name, known)} (expected one of ${known.join(', ')})`;

async function callerByEmail(store: Store, email: string | undefined): Promise<Row | null> {
  if (email === undefined) return null;
  const [found] = await findSystem(store, store.db, {
    collection: 'users',
    where: sql`t.email = ${text(email.toLowerCase())}`,
  });
  if (found === undefined) throw new ConfigError([`--as: there is no user with the email \`${email}\``]);
  const own = found.roles as readonly string[];
  return { ...found, roles: effectiveRoles(store.schema, own) };
}

async function recordArgument(store: Store, { name }: Collection, given: string | undefined): Promise<Row | undefined> {
  if (given === undefined) return undefined;
  const id = parseUuid(given);
  const [found] =
    id === undefined ? [] : await findSystem(store, store.db, { collection: name, where: sql`t.id = ${uuid(id)}` });
  if (found === undefined) throw new ConfigError([`there is no record \`${given}\` in \`${name}\``]);
  return found;
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

// ---------------------------------------------------------------- the explanation

async function explanationOf(question: Question): Promise<readonly string[]> {
  const { collection, action, request } = question;
  const rules = collection.access[action];
  const head = `${action} of ${collection.name}, as ${callerText(request)}`;
  if (rules.length === 0) return [head, '', 'there is no rule, so nobody may'];
  const permit = decide({ rules, request });
  const explained = await Promise.all(rules.map((rule, i) => ruleLines(question, rule, i)));
  const verdicts = {
    allow: 'allowed for every record',
    deny: 'denied (403) for every record',
    depends: 'it depends on the record',
  };
  return [
    head,
    `by the request alone: ${verdicts[permit.verdict]}`,
    ...explained.flat(),
    ...memberLines(question),
    ...(await conditionLines(question)),
  ];
}

const SHOWN = { allow: 'shown', deny: 'left out', depends: 'it depends on the record' };
const SET = { allow: 'may be set', deny: 'may not be set (403)', depends: 'it depends on the record' };

/** The fields and belongs_to with rules of their own for what the action does to them. */
function memberLines({ collection, action, request }: Question): readonly string[] {
  if (action === 'delete') return [];
  const own = action === 'list' ? 'read' : action;
  const words = own === 'read' ? SHOWN : SET;
  const lines = [...collection.memberAccess].flatMap(([name, { [own]: rules }]) => {
    if (rules === undefined) return [];
    const texts = rules.map(({ text }) => text).join(' or ') || 'no rule, so nobody';
    return [`  ${name}: ${words[decide({ rules, request }).verdict]}  (${texts})`];
  });
  return lines.length === 0 ? [] : ['', 'fields with rules of their own:', ...lines];
}

function callerText({ auth }: PolicyRequest): string {
  if (auth === null) return 'nobody';
  return `${auth.email} (roles: ${(auth.roles as string[]).join(', ') || 'none'})`;
}

async function ruleLines(question: Question, rule: Policy, index: number): Promise<readonly string[]> {
  const { request, record } = question;
  const { verdict } = rule.specialise(request);
  const left = { depends: 'a condition on the record', allow: 'true', deny: 'false or unknown' }[verdict];
  const lines = ['', `rule ${index + 1}: ${rule.text}`, `  what the request leaves: ${left}`];
  if (record === undefined) return lines;
  const { clause, sentence } = explain({ policy: rule, request, ...(await writeOf(question, rule, record)) });
  return [...lines, `  ${sentence}`, ...clauseLines(clause, 2)];
}

/** A create is explained as if the record were created now, an update as one that changes nothing. */
async function writeOf({ store, collection, action, request }: Question, rule: Policy, stored: Row) {
  const source = { store, q: store.db };
  const { name } = collection;
  const { record: needs, requested: operands } = policyNeedsOf(rule.checked);
  const requested = operands.flatMap(({ operand, needs: inner }) => {
    const id = idOf(operand, request);
    return id === undefined ? [] : [{ ...id, needs: inner }];
  });
  const isWrite = action === 'create' || action === 'update';
  if (!isWrite)
    return { record: stored, related: await loadRelated(source, { collection: name, stored, needs, requested }) };
  const written = { ...stored, ...(await heldBy(source, name, stored)) };
  if (action === 'update') {
    const related = await loadRelated(source, { collection: name, stored, written, needs, requested });
    return { record: stored, next: written, related };
  }
  const loading = { collection: name, written, without: String(stored.id), needs, requested };
  return { record: written, isWritten: true, related: await loadRelated(source, loading) };
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

/**
 * The statement that a list would run. A create has none: its rules are about a record that is not
 * stored yet.
 */
async function conditionLines({ store, collection, action, request }: Question): Promise<readonly string[]> {
  const permit = decide({ rules: collection.access[action], request });
  if (permit.verdict !== 'depends' || action === 'create') return [];
  const where: Sql = action === 'update' ? permit.update.where('t') : permit.where('t');
  const statement = sql`SELECT t.id FROM ${ident(collection.table)} AS t WHERE ${where} ORDER BY t.id LIMIT 21`;
  const plan = await store.db.slowRows(sql`EXPLAIN ${statement}`);
  const values = statement.values.map((value, i) => `  $${i + 1} = ${JSON.stringify(value)}`);
  return ['', 'SQL:', `  ${statement.text}`, ...values, '', 'plan:', ...plan.map(([line]) => `  ${line}`)];
}
