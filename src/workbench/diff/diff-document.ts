/** A difference of schemas as JSON, as lines for a terminal, and as Markdown for a review. */
import type { Schema } from '../../schema/model/model.ts';
import { GUEST_NOTE } from '../guest-note.ts';
import { worldDocument } from '../world-document.ts';
import { worldLines } from '../world-lines.ts';
import { isPassing, passingTestOfWorld } from '../world-test.ts';
import type { CallerChange, RuleChange, RuleExample, SchemaDifference } from './compare-schemas.ts';

/** The limit of comments on the usual platforms, with room for a heading. */
const MOST_BYTES = 60_000;

export const FAIL_ON = ['wider', 'narrower', 'any'] as const;
export type FailOn = (typeof FAIL_ON)[number];

const FAILING: Readonly<Record<FailOn, readonly string[]>> = {
  wider: ['wider', 'both', 'unknown', 'added'],
  narrower: ['narrower', 'both', 'unknown', 'removed'],
  any: ['wider', 'narrower', 'both', 'unknown', 'added', 'removed'],
};

export const failsOn = ({ settings, changes }: SchemaDifference, kind: FailOn): boolean =>
  (kind === 'any' && settings.length > 0) || changes.some(({ verdict }) => FAILING[kind].includes(verdict));

type BothSchemas = readonly [old: Schema, changed: Schema];

/** The tests are of the new schema. */
export const diffDocument = ({ settings, changes }: SchemaDifference, schemas: BothSchemas): object => ({
  settings,
  changes: changes.map(({ wider, narrower, ...change }) => ({
    ...change,
    ...(wider && { wider: exampleDocument(wider, change, schemas) }),
    ...(narrower && { narrower: exampleDocument(narrower, change, schemas) }),
  })),
});

/**
 * A world, with a file of tests that holds the decision of the new schema where a test can say it. The rules of a field
 * alone decide nothing that a test sees.
 */
function exampleDocument(
  { world, catalog, answer, failedChecks }: RuleExample,
  { action }: ChangedAction,
  schemas: BothSchemas,
) {
  const [old, changed] = schemas;
  const isOfField = /^(?:read|write) /.test(action);
  const asked = { expected: answer, isRestore: action === 'restore' };
  const passing = isOfField ? undefined : passingTestOfWorld(world, changed, asked);
  const test = passing === undefined || isPassing(passing, old) ? null : passing;
  return {
    ...worldDocument(world, catalog),
    ...(failedChecks.length > 0 && { failed_checks: failedChecks }),
    test,
  };
}
type ChangedAction = Pick<RuleChange, 'action'>;

const isChangedRule = ({ verdict }: RuleChange): boolean => verdict !== 'same';
const nameOf = ({ collection, action }: RuleChange): string => `${collection}: ${action}`;

/** `guest, editor`: the callers of whom it is so. */
function callersWho(callers: RuleChange['callers'], asks: (change: CallerChange) => boolean | null): string {
  const named = Object.entries(callers).map(([name, change]) => [name.replace('_', ' '), asks(change)] as const);
  const sure = named.filter(([, is]) => is === true).map(([name]) => name);
  const unsure = named.filter(([, is]) => is === null).map(([name]) => `perhaps ${name}`);
  return [...sure, ...unsure].join(', ');
}

function callerLines({ callers }: RuleChange): readonly string[] {
  const [gains, loses] = [callersWho(callers, (change) => change.gains), callersWho(callers, (change) => change.loses)];
  return [...(gains === '' ? [] : [`can newly: ${gains}`]), ...(loses === '' ? [] : [`can no longer: ${loses}`])];
}

const examplesOf = ({ wider, narrower }: RuleChange) => [
  ...(wider ? [{ title: 'newly allowed', lines: exampleLines(wider, 'failed') }] : []),
  ...(narrower ? [{ title: 'no longer allowed', lines: exampleLines(narrower, 'fails') }] : []),
];

const exampleLines = ({ world, catalog, asking, failedChecks }: RuleExample, verb: string): readonly string[] => [
  ...worldLines(world, asking, catalog),
  ...failedChecks.map((check) => `${verb.padEnd(8)} the check \`${check}\``),
];

export function diffLines(difference: SchemaDifference): readonly string[] {
  const changes = difference.changes.filter(isChangedRule);
  if (difference.settings.length + changes.length === 0) return ['no rule allows more or less than before'];
  const rules = changes.flatMap((change) => [
    `${nameOf(change)}: ${change.verdict}`,
    ...callerLines(change).map((line) => `  ${line}`),
    ...examplesOf(change).flatMap(({ title, lines }) => [`  ${title}:`, ...lines.map((line) => `    ${line}`)]),
  ]);
  return [...difference.settings, ...rules, ...(difference.isOfGuests ? [GUEST_NOTE] : [])];
}

export function diffMarkdown(difference: SchemaDifference): string {
  const changes = difference.changes.filter(isChangedRule).toSorted((a, b) => urgencyOf(a) - urgencyOf(b));
  const rows = changes.map((change) => {
    const { collection, action, verdict, callers } = change;
    const cells = [`\`${collection}\` ${action}`, isOpening(change) ? `**${verdict}**` : verdict];
    return `| ${[...cells, callersWho(callers, ({ gains }) => gains), callersWho(callers, ({ loses }) => loses)].join(' | ')} |`;
  });
  const table =
    rows.length === 0 ? [] : ['| | verdict | can newly | can no longer |', '|---|---|---|---|', ...rows, ''];
  const settings = difference.settings.map((line) => `- ${line}`);
  const head = [
    '### Changes of access',
    '',
    summaryOf(changes),
    '',
    ...settings,
    ...(settings.length > 0 ? [''] : []),
    ...table,
    ...(difference.isOfGuests ? [`${GUEST_NOTE}.`, ''] : []),
  ];
  const examples = changes.flatMap((change) =>
    examplesOf(change).map(({ title, lines }) =>
      [
        `<details><summary><code>${change.collection}</code> ${change.action}: ${title}</summary>`,
        '',
        '```',
        ...lines,
        '```',
        '',
        '</details>',
        '',
      ].join('\n'),
    ),
  );
  return withinBytes(head.join('\n'), examples);
}

/** The rule perhaps allows more than before. */
const isOpening = ({ verdict }: RuleChange): boolean => FAILING.wider.includes(verdict);
const urgencyOf = (change: RuleChange): number => (isOpening(change) ? 0 : 1);

function summaryOf(changes: readonly RuleChange[]): string {
  if (changes.length === 0) return 'No rule allows more or less than before.';
  const count = (...wanted: readonly RuleChange['verdict'][]): number =>
    changes.filter(({ verdict }) => wanted.includes(verdict)).length;
  const parts = [
    [count('wider', 'both'), 'allow more'],
    [count('narrower', 'both'), 'allow less'],
    [count('unknown'), 'are not decided'],
    [count('added'), 'are new'],
    [count('removed'), 'are gone'],
  ] as const;
  const words = parts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return `Rules that differ: ${words.join(', ')}.`;
}

/** Leaves out examples first, then lines. */
function withinBytes(head: string, examples: readonly string[]): string {
  const size = (text: string): number => new TextEncoder().encode(text).length;
  const note = 'Further examples are left out; `bylaw diff` prints them.\n';
  let text = `${head}\n`;
  for (const example of examples) {
    if (size(text) + size(example) + size(note) > MOST_BYTES) return text + note;
    text += `${example}\n`;
  }
  if (size(text) <= MOST_BYTES) return text;
  const lines = text.split('\n');
  while (size(lines.join('\n')) + size(note) > MOST_BYTES) lines.pop();
  return `${lines.join('\n')}\n${note}`;
}
