/** Advice about indexes as JSON, and as lines for a terminal. */
import type { MeasuredIndex } from './measure-index.ts';
import type { MissingIndex } from './missing-indexes.ts';

export interface IndexAdvice {
  readonly missing: MissingIndex;
  readonly measured?: MeasuredIndex | undefined;
}

export const adviceDocument = (advice: readonly IndexAdvice[]): object => ({
  advice: advice.map(({ missing: { collection, field, because, rules, line, statement }, measured }) => ({
    collection: collection.name,
    field: field.name,
    because,
    rules,
    line: line ?? null,
    statement,
    ...(measured && { measured }),
  })),
});

function indexReason({ collection, because, rules, field }: MissingIndex): string {
  if (because === 'filter') return `a list can be filtered and sorted by it; \`index: false\` declares that no list is`;
  const named = rules.map((i) => i + 1).join(' and ');
  return `a list of \`${collection.name}\` reads the whole table for rule ${named}, which compares \`${field.name}\``;
}

const tableSize = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} KB` : `${Math.round(bytes / 1_000_000)} MB`;

function measuredLines(measured: MeasuredIndex | undefined): readonly string[] {
  if (measured === undefined) return [];
  const { rows, bytes, plan, plan_with_index: planned = [], sample } = measured;
  const times =
    sample === undefined
      ? 'its table cannot be sampled'
      : `a sample of ${sample.rows} rows: ${sample.before_ms} ms without the index, ${sample.after_ms} ms with it`;
  return [
    `  measured      about ${rows} rows, ${tableSize(bytes)}; ${times}`,
    ...plan.map((line, i) => `  ${i === 0 ? 'plan' : '    '}          ${line}`),
    ...planned.map((line, i) => `  ${i === 0 ? 'with it' : '       '}       ${line}`),
  ];
}

export function adviceLines(advice: readonly IndexAdvice[]): readonly string[] {
  if (advice.length === 0) return ['every list rule, filter and sort has an index'];
  return advice.flatMap(({ missing, measured }) => [
    `${missing.collection.name}.${missing.field.name}: ${indexReason(missing)}`,
    `  bylaw.yaml    ${missing.line ?? 'another program owns the table: its owner runs the statement'}`,
    `  PostgreSQL    ${missing.statement}`,
    ...measuredLines(measured),
  ]);
}
