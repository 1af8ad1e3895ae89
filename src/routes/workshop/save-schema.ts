import { z } from 'zod';
import { inData } from '../../describe/collection-schemas.ts';
import { object, TEXT } from '../../describe/operation.ts';
import { callerOf, forbiddenProblem, notFoundProblem } from '../../http/gate.ts';
import { Problem, problemOfError } from '../../problem.ts';
import { versionOfText } from '../../schema/file/text-version.ts';
import { route } from '../define-route.ts';
import { jsonBody } from '../json-body.ts';
import { MOST_TEXT_BYTES, readDraftSchema } from './draft-schema.ts';

export const saveSchema = route({
  method: 'PUT',
  path: '/api/_schema',
  door: 'admin',
  id: 'save_schema',
  summary: 'Save the schema file and serve it',
  description: 'Under `bylaw dev` only, as after a save in an editor; elsewhere 404.',
  body: jsonBody(
    {
      text: z.string().describe('The text of the file.'),
      if_match: z.string().describe('The `version` of the text that it replaces.'),
    },
    MOST_TEXT_BYTES,
  ),
  answers: { 200: { description: 'It is served.', shape: inData(() => object({ version: TEXT })) } },
  problems: ['forbidden', 'not_found', 'changed', 'rate_limited'],
  async handle(ctx, app, { text, if_match: version }) {
    const asker = callerOf(ctx);
    if (asker.by === 'key') throw forbiddenProblem();
    await app.auth.countQuestion(asker);
    const { workshop } = app;
    if (workshop === undefined) throw notFoundProblem();
    readDraftSchema(text, app.schema.file);
    const saved = await workshop.saveSchema(text, version);
    if (saved === 'changed')
      throw new Problem(
        'changed',
        'the schema file has changed since you read it; read it again, and repeat the change',
      );
    if (saved !== 'saved')
      throw problemOfError('validation_failed', { pointer: '/text', code: 'not_served', detail: saved.reason });
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: { version: versionOfText(text) } };
  },
});
