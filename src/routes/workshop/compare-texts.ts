import { z } from 'zod';
import { inData } from '../../describe/collection-schemas.ts';
import { type Json, object, TEXT } from '../../describe/operation.ts';
import { callerOf, forbiddenProblem } from '../../http/gate.ts';
import { MissingPackage } from '../../optional-package.ts';
import { Problem } from '../../problem.ts';
import { QueuePerKey } from '../../queue-per-key.ts';
import type { Schema } from '../../schema/model/model.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { MOST_TEXT_BYTES, readDraftSchema } from './draft-schema.ts';

/** Milliseconds for a pair of rules, in which other requests wait. */
const COMPARE_BUDGET_MS = 20;

const VERDICTS = ['same', 'narrower', 'wider', 'both', 'unknown', 'added', 'removed'];
const BOOL_OR_UNKNOWN: Json = { type: ['boolean', 'null'], description: 'null: unknown.' };
const EXAMPLE: Json = {
  type: 'object',
  description: 'A caller, a request, a record and its related rows, and the checks that it fails under one schema.',
};
const CHANGE = object(
  {
    collection: TEXT,
    action: { ...TEXT, description: 'An action; `read FIELD`, `write FIELD`; `create checks`, `update checks`.' },
    verdict: { enum: VERDICTS },
    wider: EXAMPLE,
    narrower: EXAMPLE,
    callers: { type: 'object', additionalProperties: object({ gains: BOOL_OR_UNKNOWN, loses: BOOL_OR_UNKNOWN }) },
  },
  ['wider', 'narrower'],
);
const LINES: Json = {
  type: 'array',
  items: TEXT,
  description: 'Changes of roles, registration, checks and messages, in words.',
};

/** A comparison that finds a counterexample opens a database in memory. */
const comparisons = new QueuePerKey(
  { running: 1, waiting: 8, patienceMs: 30_000 },
  () => new Problem('rate_limited', 'other comparisons are under way; try again in some seconds'),
);

export const compareTexts = route({
  method: 'POST',
  path: '/api/_diff',
  door: 'admin',
  id: 'diff_schema',
  summary: 'Compare the served schema with a text',
  description: 'What each rule of the text newly allows and no longer allows, with an example of each.',
  body: jsonBody({ text: z.string().describe('The text of a schema file.') }, MOST_TEXT_BYTES),
  answers: {
    200: {
      description: 'The document of `bylaw diff --json`.',
      shape: inData(() => object({ settings: LINES, changes: { type: 'array', items: CHANGE } })),
    },
  },
  problems: ['forbidden', 'rate_limited', 'unavailable'],
  async handle(ctx, app, { text }) {
    const asker = callerOf(ctx);
    if (asker.by === 'key') throw forbiddenProblem();
    await app.auth.countQuestion(asker);
    const changed = readDraftSchema(text, app.schema.file);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: await comparisons.run('all', () => differenceOf(app.schema, changed)) };
  },
});

/** The solver and the database in memory are loaded at the first comparison. */
async function differenceOf(served: Schema, changed: Schema): Promise<object> {
  const { compareSchemas } = await import('../../workbench/diff/compare-schemas.ts');
  const { diffDocument } = await import('../../workbench/diff/diff-document.ts');
  const { withReplays } = await import('../../workbench/memory-database.ts');
  const compared = withReplays((ask) => compareSchemas(served, changed, { budget: COMPARE_BUDGET_MS, ask }));
  const difference = await compared.catch((error: unknown) => {
    if (!(error instanceof MissingPackage)) throw error;
    throw new Problem('unavailable', 'a comparison needs a database in memory: npm install @electric-sql/pglite');
  });
  return diffDocument(difference, [served, changed]);
}
