/** `bylaw check`: the schema and every policy, all faults at once. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError, readArguments } from '../config.ts';
import { type SchemaIssue, underlineIssue } from '../schema/issue.ts';
import { loadSchema } from '../schema/load-file.ts';
import { formatSchema } from '../schema/shape.ts';
import { type Io, reportingConfigErrors } from './command.ts';

const FLAGS = { schema: { value: 'FILE' }, json: {}, strict: {}, 'print-schema': {} } as const;

export const command = reportingConfigErrors({
  name: 'check',
  summary: 'check the schema and every policy [--schema FILE] [--json] [--strict] [--print-schema]',
  run,
});

async function run(argv: readonly string[], io: Io): Promise<number> {
  const flags = readArguments(argv, FLAGS);
  if (flags.positionals.length > 0) throw new ConfigError([`unexpected argument \`${flags.positionals[0]}\``]);
  if (flags.has('print-schema')) {
    io.stdout.write(formatSchema());
    return 0;
  }
  const file = flags.get('schema') ?? io.env.BYLAW_SCHEMA ?? 'bylaw.yaml';
  const issues = loadSchema({ file: resolve(io.cwd, file), env: io.env }).issues.map((issue) => ({ ...issue, file }));
  if (flags.has('json')) io.stdout.write(`${JSON.stringify(issues.map(inJson), null, 2)}\n`);
  else io.stdout.write(report(issues, { file: resolve(io.cwd, file), strict: flags.has('strict') }));
  const failed = issues.some(({ severity }) => severity === 'error' || flags.has('strict'));
  return failed ? 1 : 0;
}

/** In the order of operations.md. */
function inJson({ code, severity, message, file, line, column, end_line, end_column, path, fix }: SchemaIssue): object {
  return {
    code,
    severity,
    message,
    file,
    line,
    column,
    end_line,
    end_column,
    path,
    ...(fix === undefined ? {} : { fix }),
  };
}

function report(
  issues: readonly SchemaIssue[],
  { file, strict }: { readonly file: string; readonly strict: boolean },
): string {
  if (issues.length === 0) return 'no errors, no warnings\n';
  const text = issues[0]!.code === 'no_file' ? '' : readFileSync(file, 'utf8');
  const errors = issues.filter(({ severity }) => severity === 'error').length;
  const warnings = issues.length - errors;
  const sum = `${count(errors, 'error')}, ${count(warnings, 'warning')}${strict && warnings > 0 ? ' (an error each under --strict)' : ''}`;
  return `${issues.map((issue) => underlineIssue(text, issue)).join('\n\n')}\n\n${sum}\n`;
}

const count = (n: number, what: string): string => `${n === 0 ? 'no' : n} ${what}${n === 1 ? '' : 's'}`;
