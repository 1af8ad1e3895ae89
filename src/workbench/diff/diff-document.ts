/** A difference of schemas as JSON, as lines for a terminal, and as Markdown for a review. */
import type { World } from '../../policy/analyse/solve/world.ts';
import type { Schema } from '../../schema/model/model.ts';
import { worldDocument, worldLines } from '../world-document.ts';
import { testOfWorld } from '../world-test.ts';
import type { CallerChange, RuleChange, SchemaDifference } from './compare-schemas.ts';

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

/** `changed`: the new schema, of which the tests are. */
export const diffDocument = ({ settings, changes }: SchemaDifference, changed: Schema): object => ({
  settings,
  changes: changes.map(({ wider, narrower, ...change }) => ({
    ...change,
    ...(wider && { wider: exampleDocument(wider, change, { changed, isAllowed: true }) }),
    ...(narrower && { narrower: exampleDocument(narrower, change, { changed, isAllowed: false }) }),
  })),
});

interface ExampleOptions {
  readonly changed: Schema;
  readonly isAllowed: boolean;
}

/**
 * A world, with a file of tests that holds the decision of the new schema where a test can say it. The rules of a field
 * alone decide nothing that a test sees.
 */
function exampleDocument(world: World, { action }: Pick<RuleChange, 'action'>, { changed, isAllowed }: ExampleOptions) {
  const isOfField = action.includes(' ');
  const test = isOfField ? undefined : testOfWorld(world, changed, { expected: isAllowed ? 'yes' : 'no' });
  return { ...worldDocument(world), test: test ?? null };
}

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
  ...(wider ? [{ title: 'newly allowed', lines: worldLines(wider) }] : []),
  ...(narrower ? [{ title: 'no longer allowed', lines: worldLines(narrower) }] : []),
];

export function diffLines(difference: SchemaDifference): readonly string[] {
  const changes = difference.changes.filter(isChangedRule);
  if (difference.settings.length + changes.length === 0) return ['no rule allows more or less than before'];
  const rules = changes.flatMap((change) => [
    `${nameOf(change)}: ${change.verdict}`,
    ...callerLines(change).map((line) => `  ${line}`),
    ...examplesOf(change).flatMap(({ title, lines }) => [`  ${title}:`, ...lines.map((line) => `    ${line}`)]),
  ]);
  return [...difference.settings, ...rules];
}

export function diffMarkdown(difference: SchemaDifference): string {
  const changes = difference.changes.filter(isChangedRule);
  const rows = changes.map((change) => `| ${nameOf(change)} | ${change.verdict} | ${callerLines(change).join('; ')} |`);
  const table = rows.length === 0 ? [] : ['| rule | verdict | callers |', '|---|---|---|', ...rows, ''];
  const head = ['### Changes of access', '', ...difference.settings.map((line) => `- ${line}`), '', ...table];
  if (difference.settings.length + changes.length === 0) head.push('No rule allows more or less than before.', '');
  const examples = changes.flatMap((change) =>
    examplesOf(change).map(({ title, lines }) =>
      [
        '<details><summary>',
        `${nameOf(change)}, ${title}`,
        '</summary>',
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
