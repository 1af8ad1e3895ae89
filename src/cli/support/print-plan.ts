/** A migration as SQL for people to read: what each statement does to the records and to those who use them. */
import type { BrokenRule } from '../../migrations/broken-rules.ts';
import type { Migration, RiskyStatement } from '../../migrations/migration.ts';

const MARKS: Readonly<Record<RiskyStatement['kind'], string>> = {
  destructive: 'DESTRUCTIVE',
  impossible: 'IMPOSSIBLE',
  rewrites: 'SHUTS THE TABLE',
};

export function printPlan({ statements, destructive, apart }: Migration, broken: readonly BrokenRule[]): string {
  const risks = new Map(destructive.map((risky) => [risky.sql, risky]));
  const first = statements.slice(0, statements.length - apart.length);
  const printed = (some: readonly string[]): readonly string[] =>
    some.map((statement) => {
      const risk = risks.get(statement);
      return `${risk === undefined ? '' : `-- ${MARKS[risk.kind]}: ${risk.why}\n`}${statement};\n`;
    });
  const parts = [
    ...broken.map(brokenLine),
    ...(statements.length === 0 ? ['-- nothing to do: the database matches the schema\n'] : []),
    ...printed(first),
    ...(apart.length === 0 ? [] : ['-- then, one after the other, while the tables are in use:\n']),
    ...printed(apart),
  ];
  return parts.join('');
}

function brokenLine({ collection, field, rule, count, query }: BrokenRule): string {
  const what = `break \`${rule}\` of \`${field}\``;
  const who =
    count === undefined
      ? `records of \`${collection}\` may ${what} (counting them takes too long)`
      : `${count} ${count === 1 ? 'record' : 'records'} of \`${collection}\` ${count === 1 ? what.replace('break', 'breaks') : what}`;
  return `-- RULE: ${who}; nothing changes them, and their next update has to; ${query} finds them\n`;
}
