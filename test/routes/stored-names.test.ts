// @module-tag long
/** Tables and columns may have other names than collections and members: no answer shows them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseDocument, stringify } from 'yaml';
import { Recorder } from '../cluster/recorder.ts';
import { runScript } from '../cluster/script.ts';
import { describeOnBoth, schemaFrom, TestService } from '../support/service.ts';

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

describeOnBoth(
  'stored names',
  (service) => {
    test('a service whose tables and columns have other names answers as with those of the schema', async () => {
      const recorded = async (of: TestService) => {
        const recorder = new Recorder(of.url);
        await runScript(recorder, of.app);
        return recorder.steps;
      };
      const usual = new TestService(service.kind);
      await usual.start({ schema: TEXT });
      try {
        expect(await recorded(service)).toEqual(await recorded(usual));
      } finally {
        await usual.stop();
      }
      const { collections } = schemaFrom(renamed(TEXT));
      expect(collections.get('documents')).toMatchObject({ table: 'The "documents", all' });
    });
  },
  { schema: renamed(TEXT) },
);
