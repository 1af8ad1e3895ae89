// @module-tag long
/** Collections with ids of another kind answer as those with UUIDs: the whole script of requests, with ids put in the place of ids. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseDocument, stringify } from 'yaml';
import { raw } from '../../src/sql.ts';
import { Recorder } from '../cluster/recorder.ts';
import { runScript } from '../cluster/script.ts';
import { type Answer, Client, type Sending } from '../support/client.ts';
import { TestService } from '../support/service.ts';

const TEXT = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8').replaceAll(
  /^ +distribute: .*\n/gm,
  '',
);

interface Keyed {
  id?: object;
}

const others = (names: Iterable<string>): readonly string[] =>
  [...names].filter((name) => name !== 'users' && name !== 'files');

function withKeys(key: object): string {
  const file = parseDocument(TEXT).toJS() as { collections: Record<string, Keyed> };
  for (const name of others(Object.keys(file.collections))) file.collections[name]!.id = key;
  return stringify(file);
}

/** Ids of the sequences of the test. */
const FIRST = 9_000_000_000_000;
const UUID = (digits: string): string => `00000000-0000-4000-8000-${digits.padStart(12, '0')}`;
const NOWHERE = /00000000-0000-4000-8000-00000000dead/g;

/** Spells ids as UUIDs for the script, and as the service does for the service. */
abstract class Spelling extends Client {
  abstract toService(text: string): string;
  abstract toScript(text: string): string;

  override with(headers: Sending['headers'] = {}): Client {
    return new (this.constructor as typeof Client)(this.url, { ...this.headers, ...headers });
  }

  override async send(method: string, path: string, sending: Sending = {}): Promise<Answer> {
    const json = sending.json === undefined ? {} : { json: JSON.parse(this.toService(JSON.stringify(sending.json))) };
    const answer = await super.send(method, this.toService(path), { ...sending, ...json });
    const text = this.toScript(answer.text).replaceAll(
      /\((?:a whole number within[^)]*|a string that is not empty)\)/g,
      '(a UUID)',
    );
    return { ...answer, text, body: answer.body === undefined ? undefined : JSON.parse(text) };
  }
}

class Numbers extends Spelling {
  toService(text: string): string {
    const named = text.replaceAll(NOWHERE, UUID('999999999999'));
    return named.replaceAll(
      /(?:\\?")?00000000-0000-4000-8000-(9\d{11})(?:\\?")?/g,
      (_, digits) => `90${digits.slice(1)}`,
    );
  }
  toScript(text: string): string {
    return text.replaceAll(/"?\b90(\d{11})\b"?/g, (_, digits) => `"${UUID(`9${digits}`)}"`);
  }
}

class Words extends Spelling {
  toService(text: string): string {
    const named = text.replaceAll(NOWHERE, UUID('999999999999'));
    return named.replaceAll(/00000000-0000-4000-8000-(9\d{11})/g, (_, digits) => `it's no. 90${digits.slice(1)}`);
  }
  toScript(text: string): string {
    return text.replaceAll(/it's no\. 90(\d{11})/g, (_, digits) => UUID(`9${digits}`));
  }
}

async function recorded(schema: string, clients: typeof Client = Client, prepare?: (table: string) => string) {
  const service = new TestService('embedded');
  await service.start({ schema });
  try {
    const { db, schema: served } = service.app;
    for (const name of others(served.collections.keys())) if (prepare) await db.run(raw(prepare(name)));
    const recorder = new Recorder(service.url, undefined, clients);
    await runScript(recorder, service.app);
    return recorder.steps;
  } finally {
    await service.stop();
  }
}
type Steps = Awaited<ReturnType<typeof recorded>>;

describe('the script of requests', () => {
  let wanted: Steps;
  beforeAll(async () => {
    wanted = await recorded(TEXT);
  });
  let start = FIRST;

  test('the script has the same answers with ids that are numbers of the database', async () => {
    const key = { type: 'int', column: 'Number, "of" it', made_by: 'database' };
    const begin = (table: string): string => {
      start += 1_000_000;
      return `SELECT setval(pg_get_serial_sequence('"${table}"', 'Number, "of" it'), ${start})`;
    };
    expect(await recorded(withKeys(key), Numbers as unknown as typeof Client, begin)).toEqual(wanted);
  });

  test('the script has the same answers with ids that are strings of the database', async () => {
    const key = { type: 'string', column: 'code', made_by: 'database' };
    const begin = (table: string): string => {
      start += 1_000_000;
      return `CREATE SEQUENCE "${table}_ids" START ${start};
        ALTER TABLE "${table}" ALTER COLUMN code SET DEFAULT 'it''s no. ' || nextval('"${table}_ids"')`;
    };
    expect(await recorded(withKeys(key), Words as unknown as typeof Client, begin)).toEqual(wanted);
  });
});
