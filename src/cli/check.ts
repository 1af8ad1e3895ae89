/** `bylaw check`: the schema and every policy, all issues at once. */
import { asksWorkersDirectly, ConfigError, processesOf, schemaFileOf } from '../config.ts';
import type { GrowthCode } from '../schema/advice/growth-notes.ts';
import { guestColumns, guestRows } from '../schema/advice/guest-table.ts';
import type { SchemaIssue } from '../schema/file/issue.ts';
import { formatSchema } from '../schema/file/shape.ts';
import { loggedTablesOf } from '../schema/model/logged-tables.ts';
import type { Schema } from '../schema/model/model.ts';
import { clusterAdvice } from './support/cluster-advice.ts';
import type { Arguments, Command, Io } from './support/command.ts';
import { type CheckedSchemaFile, type IssueFilter, readGrowthNotes, readSchemaFile } from './support/schema-file.ts';

export const command: Command = {
  name: 'check',
  summary: 'checks the schema and every policy',
  settings: ['schema', 'workers', 'databaseWorkers'],
  flags: {
    json: { about: 'prints the issues as JSON: [{ code, severity, message, file, line, column, … }]' },
    growth: {
      about:
        'notes each field that lists can be filtered and sorted by without an index, each string without `max`, and each required one without `min`',
    },
    shards: {
      value: 'MACHINES',
      about: 'advises the number of shards for a cluster of up to so many machines, and counts connections',
    },
    strict: { about: 'exits with 1 on warnings, too, and notes each required string without `min`' },
    'print-schema': { about: 'prints the JSON Schema of bylaw.yaml, for editors, and checks nothing' },
  },
  run,
};

/** Forms and people mean a required text to have characters. */
const NO_MIN: GrowthCode = 'no_min';

async function run(args: Arguments, io: Io): Promise<number> {
  if (args.has('print-schema')) {
    io.stdout.write(formatSchema());
    return 0;
  }
  if (args.has('shards')) {
    io.stdout.write(clusterAdvice(clusterOf(args, io)));
    return 0;
  }
  const isStrict = args.has('strict');
  const file = readSchemaFile(schemaFileOf(args.flags, io.env), io);
  const isNamed: IssueFilter = ({ code }) => args.has('growth') || (isStrict && code === NO_MIN);
  const notes = readGrowthNotes(file, io, isNamed);
  if (args.has('json')) io.stdout.write(`${JSON.stringify([...file.issues, ...notes.issues].map(asJson), null, 2)}\n`);
  else {
    const guests = file.schema === undefined ? '' : guestTable(file.schema);
    io.stdout.write(
      guests + findingsSummary(file, isStrict) + (args.has('growth') ? growthSummary(notes) : noted(notes)),
    );
  }
  const isUnnamed: IssueFilter = (note) => !isNamed(note) && isOfField(note);
  if (!args.has('json')) io.stderr.write(growthHint(readGrowthNotes(file, io, isUnnamed).issues));
  if (!args.has('json')) io.stderr.write(feedsHint(file.schema));
  return file.issues.some(({ severity }) => severity === 'error' || isStrict) ? 1 : 0;
}

/** Throws ConfigError. */
function clusterOf(args: Arguments, io: Io): Parameters<typeof clusterAdvice>[0] {
  const machines = Number(args.get('shards'));
  if (!Number.isInteger(machines) || machines < 1 || machines > 1_000)
    throw new ConfigError([`--shards: expected a number of machines from 1 to 1000, found ${args.get('shards')}`]);
  return { machines, processes: processesOf(args.flags, io.env), isDirect: asksWorkersDirectly(args.flags, io.env) };
}

/** The order of keys is part of the contract. */
function asJson({ code, severity, message, file, line, column, end_line, end_column, path, fix }: SchemaIssue): object {
  return { code, severity, message, file, line, column, end_line, end_column, path, fix };
}

function findingsSummary({ issues, report }: CheckedSchemaFile, isStrict: boolean): string {
  if (issues.length === 0) return 'no errors, no warnings\n';
  const errors = issues.filter(({ severity }) => severity === 'error').length;
  const warnings = issues.length - errors;
  const note = isStrict && warnings > 0 ? ' (an error each under --strict)' : '';
  const isOfPolicy = issues.some(({ severity, path }) => severity === 'warning' && /\.access\.|^conditions/.test(path));
  const hint = isOfPolicy
    ? 'a comment before a condition that is meant silences its warnings: /* intended: why */\n'
    : '';
  return `${report}\n${hint}${count(errors, 'error')}, ${count(warnings, 'warning')}${note}\n`;
}

/** Empty where the schema admits no guests. */
function guestTable(schema: Schema): string {
  if (!schema.guests) return '';
  const rows = guestRows(schema).map(({ collection, actions }) => [collection, ...actions]);
  if (rows.length === 0) return 'guests may do nothing: no rule is true for them\n\n';
  const table = [['', ...guestColumns(schema)], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
  return `what guests may do (\`some\`: the record or the request decides)\n${lines.join('\n')}\n\n`;
}

type Notes = ReturnType<typeof readGrowthNotes>;

const noted = ({ report }: Notes): string => (report === '' ? '' : `\n${report}`);

const growthSummary = (notes: Notes): string =>
  notes.issues.length === 0 ? 'every field of the file that lists can be filtered by has an index\n' : noted(notes);

/** Feeds read these collections, themselves or by their rules; row triggers of distributed tables do not run on a cluster. */
function feedsHint(schema: CheckedSchemaFile['schema']): string {
  if (schema === undefined) return '';
  const owners = new Set([...loggedTablesOf(schema).values()].map(({ owner }) => owner));
  const spread = [...owners].filter((name) => schema.collections.get(name)?.tenantLayout?.kind === 'by');
  if (spread.length === 0) return '';
  const names = spread.map((name) => `\`${name}\``).join(', ');
  return `feeds of changes read ${names}, distributed by tenant: partitions have such feeds, a cluster of Citus refuses them\n`;
}

/** Excludes built-in fields: few lists filter by them. */
const isOfField = ({ path }: SchemaIssue): boolean => path.includes('.fields.');

function growthHint(notes: readonly SchemaIssue[]): string {
  const lacking = (wanted: GrowthCode, subject: string, what: string): readonly string[] => {
    const number = notes.filter(({ code }) => code === wanted).length;
    return number === 0 ? [] : [`${count(number, subject)} ${number === 1 ? 'has' : 'have'} ${what}`];
  };
  const found = [
    ...lacking('no_index', 'field', 'no index for filters and sorts'),
    ...lacking('no_max', 'string', 'no `max`'),
    ...lacking('no_min', 'required string', 'no `min`'),
  ];
  return found.length === 0 ? '' : `${found.join(', ')}; \`bylaw check --growth\` names them\n`;
}

const count = (n: number, what: string): string => `${n === 0 ? 'no' : n} ${what}${n === 1 ? '' : 's'}`;
