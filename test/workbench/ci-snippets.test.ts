/** The pipelines of docs/testing-policies.md: YAML that a CI server reads, with commands and flags that exist. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadCommands } from '../../src/cli/index.ts';
import { type Command, flagsOf } from '../../src/cli/support/command.ts';

const page = readFileSync(new URL('../../docs/testing-policies.md', import.meta.url), 'utf8');
const [github, gitlab] = [...page.matchAll(/```yaml ci\n([\s\S]*?)```/g)].map(([, text]) => parse(text!));
const PIPELINES = [
  {
    server: 'GitHub',
    lines: (): string[] => github.jobs.policies.steps.flatMap(({ run }: { run?: string }) => run ?? []),
  },
  { server: 'GitLab', lines: (): string[] => gitlab.policies.script },
];

it.each(PIPELINES)(
  'the pipeline of $server checks, proves, tests and compares by commands that exist',
  async ({ lines }) => {
    const commands = (await loadCommands()) as readonly Command[];
    const calls = lines()
      .flatMap((line) => /^npx bylaw (\S+)(.*)$/.exec(line) ?? [])
      .filter((_, i) => i % 3 !== 0);
    const names = calls.filter((_, i) => i % 2 === 0);
    expect(names).toEqual(['check', 'prove', 'test', 'diff']);
    for (const [i, name] of names.entries()) {
      const known = Object.keys(flagsOf(commands.find((command) => command.name === name)!));
      const flags = [...calls[2 * i + 1]!.matchAll(/--([\w-]+)/g)].map(([, flag]) => flag);
      expect(known).toEqual(expect.arrayContaining(flags));
    }
    expect(lines().some((line) => line.includes('diff.md') && !line.includes('bylaw'))).toBe(true);
  },
);
