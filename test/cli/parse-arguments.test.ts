import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/cli/support/command.ts';
import { parseArguments } from '../../src/cli/support/parse-arguments.ts';

const COMMAND: Command = {
  name: 'sample',
  summary: 'is a sample',
  positionals: ['NAME'],
  settings: ['port', 'host'],
  flags: { role: { value: 'R', repeated: true, about: 'a role' }, json: { about: 'prints JSON' } },
  run: async () => 0,
};
const issuesOf = (...argv: readonly string[]): readonly string[] => parseArguments(argv, COMMAND).issues;

describe('arguments', () => {
  test('a command line has flags, switches, repeated flags and positionals', () => {
    const { args, issues } = parseArguments(['--role', 'x', '--role=y', '--json', '--port=', '--', '--b'], COMMAND);
    expect(issues).toEqual([]);
    expect(args.positionals).toEqual(['--b']);
    expect([args.all('role'), args.get('role'), args.has('json'), args.get('other')]).toEqual([
      ['x', 'y'],
      'y',
      true,
      undefined,
    ]);
    expect(args.flags).toEqual({ role: 'y', json: '', port: '' });
  });

  test.each<[readonly string[], readonly string[]]>([
    [['a', '--prot=1'], ['unknown flag `--prot`; did you mean `--port`?']],
    [
      ['a', '--prot', '1', '--host'],
      ['unknown flag `--prot`; did you mean `--port`?', '--host needs a value (H)'],
    ],
    [['a', '--host', '--port', '1'], ['--host needs a value (H)']],
    [['a', '--port', '1', '--port', '2'], ['--port is given twice']],
    [['a', '-p'], ['unknown flag `-p`']],
    [['a', '--no-json'], ['unknown flag `--no-json`; did you mean `--json`?']],
    [['a', '--json=1'], ['--json takes no value']],
    [
      ['a', '--constructor', '--__proto__=x'],
      ['unknown flag `--constructor`', 'unknown flag `--__proto__`'],
    ],
    [[], ['expected `bylaw sample NAME`: NAME is missing']],
    [
      ['a', 'b', 'c'],
      ['unexpected argument `b`', 'unexpected argument `c`'],
    ],
  ])('the error of %j is reported', (argv, issues) => {
    expect(issuesOf(...argv)).toEqual(issues);
  });
});
