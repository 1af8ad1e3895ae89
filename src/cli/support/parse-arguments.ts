/**
 * The words after a command: `--flag value`, `--flag=value`, switches, and positional arguments;
 * `--` ends the flags.
 */
import { parseArgs } from 'node:util';
import { unknownName } from '../../config.ts';
import { Arguments, type Command, type Flags, flagsOf } from './command.ts';

export interface ParsedArguments {
  readonly args: Arguments;
  /** All errors, in the order of the command line. */
  readonly issues: readonly string[];
}

export function parseArguments(argv: readonly string[], command: Command): ParsedArguments {
  const flags = flagsOf(command);
  const { tokens } = parseArgs({
    args: withOptionalValues(argv, flags),
    options: optionsOf(flags),
    strict: false,
    tokens: true,
  });
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
  const issues: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const issue = issueOf(token, flags, values);
    if (issue !== undefined) issues.push(issue);
    else values.set(token.name, [...(values.get(token.name) ?? []), token.value ?? '']);
  }
  // A word after an unknown flag may be its value: it is not reported as an unexpected argument.
  if (issues.length === 0) issues.push(...positionalIssues(positionals, command));
  return { args: new Arguments(positionals, values), issues };
}

/** Gives each flag whose value is left out an empty one. */
function withOptionalValues(argv: readonly string[], flags: Flags): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  return argv.map((word, i) => {
    const value = i < end && word.startsWith('--') ? flags[word.slice(2)]?.value : undefined;
    // `[=FILE]` is never the next word, which may be an argument of the command.
    if (value?.startsWith('[=')) return `${word}=`;
    const isOptional = value?.startsWith('[') === true;
    const next = i + 1 < end ? argv[i + 1] : undefined;
    return isOptional && (next === undefined || next.startsWith('--')) ? `${word}=` : word;
  });
}

const optionsOf = (flags: Flags) =>
  Object.fromEntries(
    Object.entries(flags).map(([name, { value }]) => [
      name,
      { type: value === undefined ? 'boolean' : 'string' } as const,
    ]),
  );

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string;
  readonly inlineValue?: boolean;
}

function issueOf(token: OptionToken, flags: Flags, seen: ReadonlyMap<string, unknown>): string | undefined {
  const { name, rawName, value, inlineValue } = token;
  const flag = Object.hasOwn(flags, name) && rawName.startsWith('--') ? flags[name] : undefined;
  if (flag === undefined)
    return unknownName(
      'flag',
      rawName,
      Object.keys(flags).map((known) => `--${known}`),
    );
  if (flag.value === undefined) {
    if (value !== undefined) return `${rawName} takes no value`;
  } else if (value === undefined || (inlineValue === false && value.startsWith('--'))) {
    return `${rawName} needs a value (${flag.value})`;
  }
  return seen.has(name) && flag.repeated !== true ? `${rawName} is given twice` : undefined;
}

function positionalIssues(given: readonly string[], { positionals = [], name }: Command): readonly string[] {
  const required = positionals.filter((positional) => !positional.startsWith('['));
  if (given.length < required.length)
    return [`expected \`${['bylaw', name, ...positionals].join(' ')}\`: ${positionals[given.length]} is missing`];
  if (positionals.at(-1)?.includes('…') === true) return [];
  return given.slice(positionals.length).map((word) => `unexpected argument \`${word}\``);
}
