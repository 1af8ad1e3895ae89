// @module-tag long
/** Tables and columns may have other names than collections and members: no answer shows them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseDocument, stringify } from 'yaml';
import { Recorder } from '../cluster/recorder.ts';
import { runScript } from '../cluster/script.ts';
import { schemaFrom, TestService } from '../support/service.ts';

const TEXT = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8').replaceAll(
  /^ +distribute: .*\n/gm,
  '',
);

interface Named {
  table?: string;
  timestamps?: object;
  fields?: Record<string, string | object>;
  relations?: Record<string, { kind: string; column?: string }>;
}

/** The names need quotes, have quotes, and look like lists of names. */
function renamed(text: string): string {
  const file = parseDocument(text).toJS() as { collections: Record<string, Named> };
  for (const [name, collection] of Object.entries(file.collections)) {
    const { fields = {}, relations = {} } = collection;
    if (name !== 'users' && name !== 'files') {
      collection.table = `The "${name}", all`;
      collection.timestamps = { created_at: 'made "on"', updated_at: 'created_at' };
    }
    for (const [field, shape] of Object.entries(fields))
      fields[field] = { ...(typeof shape === 'string' ? { type: shape } : shape), column: `${field}, "of" ${name}` };
    for (const [relation, shape] of Object.entries(relations))
      if (shape.kind === 'belongs_to') shape.column = `${relation} 'no'`;
  }
  return stringify(file);
}

test('a service whose tables and columns have other names answers as with those of the schema', async () => {
  const recorded = async (schema: string) => {
    // Statements have one text on both databases.
    const service = new TestService('embedded');
    await service.start({ schema });
    try {
      const recorder = new Recorder(service.url);
      await runScript(recorder, service.app);
      return recorder.steps;
    } finally {
      await service.stop();
    }
  };
  expect(await recorded(renamed(TEXT))).toEqual(await recorded(TEXT));
  expect(schemaFrom(renamed(TEXT)).collections.get('documents')).toMatchObject({ table: 'The "documents", all' });
});
