/** A test to paste: a whole file, with the callers and rows of an existing one. */
import type { Expectation } from '../test/expectation.ts';
import { expectedText } from '../test/print-results.ts';
import type { PolicyTests } from '../test/read-tests.ts';
import type { TestWorld } from '../test/test-world.ts';

/** A file of tests with its rows in memory. */
export interface TestedWorld {
  readonly tests: PolicyTests;
  readonly world: TestWorld;
  readonly text: string;
}

export function testOf(
  { collection, record, action, as, field, data, expected, deletedAt }: Expectation,
  tested: TestedWorld,
): string {
  const word = expectedText(expected);
  const at = /^tests:/m.exec(tested.text)?.index ?? tested.text.length;
  const named = data === undefined ? '' : tested.tests.names.readable(JSON.stringify(data));
  const cell = field === undefined ? word : `{ ${field}: ${word} }`;
  const lines =
    action === 'create'
      ? [`  - create: ${collection.name}`, `    as: ${as}`, `    data: ${named}`, `    expect: ${word}`]
      : data === undefined && deletedAt === undefined
        ? [`  - ${collection.name}: ${record}`, `    ${as}: { ${action}: ${cell} }`]
        : [
            `  - ${collection.name}: ${record}`,
            `    as: ${as}`,
            `    ${deletedAt === undefined ? `update: ${named}` : `restore: ${deletedAt}`}`,
            `    expect: ${word}`,
          ];
  return `${tested.text.slice(0, at).trimEnd()}\n\ntests:\n${lines.join('\n')}\n`;
}
