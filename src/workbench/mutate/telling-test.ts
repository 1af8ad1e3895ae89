/** A test to paste: a whole file, with the callers and rows of an existing one. */
import type { Data } from '../../records/write/input.ts';
import type { Collection } from '../../schema/model/model.ts';
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
  const named =
    data === undefined ? '' : tested.tests.names.readable(JSON.stringify(withNames(collection, data, tested)));
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

/** The ids of int keys are numbers, which `readable` leaves as they are: references get their names here. */
function withNames({ relations }: Collection, data: Data, { tests: { names } }: TestedWorld): Data {
  const entries = Object.entries(data).map(([key, value]): [string, unknown] => {
    const relation = relations.get(key);
    const isId = typeof value === 'number' && relation !== undefined;
    return [key, isId ? (names.nameOf(relation.collection, String(value)) ?? value) : value];
  });
  return Object.fromEntries(entries);
}
