import { z } from 'zod';
import { inData } from '../../describe/collection-schemas.ts';
import { object, TEXT } from '../../describe/operation.ts';
import { callerOf, forbiddenProblem, notFoundProblem } from '../../http/gate.ts';
import { Problem, pointerPart } from '../../problem.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { MOST_TEXT_BYTES, textErrors } from './draft-schema.ts';

export const readPolicyTests = route({
  method: 'GET',
  path: '/api/_test',
  door: 'admin',
  id: 'read_tests',
  summary: 'Read the policy tests of the project',
  description: 'Under `bylaw dev` only: the `*.policy.yaml` beside the schema file; elsewhere 404.',
  answers: {
    200: {
      description: 'Texts by name.',
      shape: inData(() => object({ files: { type: 'object', additionalProperties: TEXT } })),
    },
  },
  problems: ['forbidden', 'not_found', 'rate_limited'],
  async handle(ctx, app) {
    const asker = callerOf(ctx);
    if (asker.by === 'key') throw forbiddenProblem();
    await app.auth.countQuestion(asker);
    if (app.workshop === undefined) throw notFoundProblem();
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: { files: Object.fromEntries(app.workshop.testFiles()) } };
  },
});

const COUNT = { type: 'integer' };

export const runPolicyTests = route({
  method: 'POST',
  path: '/api/_test',
  door: 'admin',
  id: 'run_tests',
  summary: 'Run policy tests',
  description: 'Under `bylaw dev` only, on a database in memory; elsewhere 404.',
  body: jsonBody(
    {
      files: z.record(z.string(), z.string()).describe('Texts of policy tests by name.'),
      mutate: z.boolean().optional().describe('Adds `mutants`: changes of rules, and whether a test notices them.'),
    },
    MOST_TEXT_BYTES,
  ),
  answers: {
    200: {
      description: 'The document of `bylaw test --json`.',
      shape: inData(() =>
        object(
          {
            passed: COUNT,
            failed: COUNT,
            tests: { type: 'array', items: { type: 'object' } },
            coverage: { type: 'object' },
            mutants: { type: 'array', items: { type: 'object' } },
          },
          ['mutants'],
        ),
      ),
    },
  },
  problems: ['forbidden', 'not_found', 'rate_limited'],
  async handle(ctx, app, { files, mutate = false }) {
    const asker = callerOf(ctx);
    if (asker.by === 'key') throw forbiddenProblem();
    await app.auth.countQuestion(asker);
    const { workshop } = app;
    if (workshop === undefined) throw notFoundProblem();
    const run = await workshop.runTests(new Map(Object.entries(files)), mutate);
    if ('unusable' in run) {
      const errors = run.unusable.flatMap(({ file, text, issues }) =>
        textErrors(text, { pointer: `/files/${pointerPart(file)}`, issues }),
      );
      throw new Problem('validation_failed', 'the tests have errors', { errors });
    }
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: run.results };
  },
});
