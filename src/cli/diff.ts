/** `bylaw diff OLD NEW`: what each rule of a schema newly allows and no longer allows, with an example of each. */
import { ConfigError } from '../config.ts';
import { ReplayDisagreement } from '../workbench/decided-by-sql.ts';
import { compareSchemas } from '../workbench/diff/compare-schemas.ts';
import {
  diffDocument,
  diffLines,
  diffMarkdown,
  FAIL_ON,
  type FailOn,
  failsOn,
} from '../workbench/diff/diff-document.ts';
import { withReplays } from '../workbench/memory-database.ts';
import { budgetOf } from './support/budget.ts';
import type { Arguments, Command, Io } from './support/command.ts';
import { reportDisagreement } from './support/disagreement.ts';
import { schemaOfArgument } from './support/schema-revision.ts';

export const command: Command = {
  name: 'diff',
  summary: 'compares two schemas: what each rule newly allows and no longer allows, with an example of each',
  positionals: ['OLD', 'NEW'],
  settings: [],
  flags: {
    json: { about: 'prints one JSON document, with the rules that are the same' },
    markdown: { about: 'prints Markdown for a comment on a review, of at most 60 KB' },
    'fail-on': {
      value: 'KIND',
      about: 'exits with 1 for `wider`, `narrower` or `any` changes; what is unknown counts as a change',
    },
    budget: { value: 'MS', about: 'the time for a pair of rules; what it does not decide is unknown', default: '50' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [old = '', changed = ''] = args.positionals;
  const failOn = failOnOf(args);
  const budget = budgetOf(args);
  const schemas = [schemaOfArgument(old, changed, io), schemaOfArgument(changed, old, io)] as const;
  try {
    const difference = await withReplays((ask) => compareSchemas(...schemas, { budget, ask }));
    if (args.has('json')) io.stdout.write(`${JSON.stringify(diffDocument(difference, schemas), undefined, 2)}\n`);
    else if (args.has('markdown')) io.stdout.write(diffMarkdown(difference));
    else io.stdout.write(`${diffLines(difference).join('\n')}\n`);
    return failOn !== undefined && failsOn(difference, failOn) ? 1 : 0;
  } catch (error) {
    if (!(error instanceof ReplayDisagreement)) throw error;
    return reportDisagreement('diff', error, io);
  }
}

/** Throws ConfigError. */
function failOnOf(args: Arguments): FailOn | undefined {
  const given = args.get('fail-on');
  const found = FAIL_ON.find((kind) => kind === given);
  if (given === undefined || found !== undefined) return found;
  throw new ConfigError([`--fail-on: expected \`wider\`, \`narrower\` or \`any\`, found \`${given}\``]);
}
