// @module-tag long
/** No secret of a second factor is in a log, an answer, a metric, a mail or the data folder. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type Answer, Client } from '../../support/client.ts';
import { fillDataFolder } from '../../support/embedded/embedded.ts';
import { run, serve } from '../../support/process.ts';
import { codeOfApp } from '../authenticator.ts';
import { newPerson, PASSWORD } from '../people.ts';

const folder = await mkdtemp(join(tmpdir(), 'bylaw-leaks-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

async function filesIn(path: string): Promise<readonly (readonly [string, Buffer])[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(files.map(async (file) => [file, await readFile(file)] as const));
}

test('secrets, codes and challenges are in the one answer that gives them, and nowhere else', {
  timeout: 120_000,
}, async () => {
  const data = join(folder, 'data');
  await fillDataFolder(data);
  const server = await serve(['--schema', join(import.meta.dirname, '../../support/bylaw.yaml'), '--data', data]);
  const answers: Answer[] = [];
  const client = new Client(server.url);
  const person = await newPerson(client);
  const kept = async (answer: Promise<Answer>): Promise<Answer> => {
    answers.push(await answer);
    return answer;
  };
  const { secret, uri } = (await person.client.post('/api/auth/totp/enrol')).body;
  const code = codeOfApp(secret);
  const codes: string[] = (await person.client.post('/api/auth/totp/confirm', { code })).body.recovery_codes;
  const { challenge } = (await client.post('/api/auth/login', { email: person.email, password: PASSWORD })).body;
  const answer = (body: object) => kept(client.post('/api/auth/challenge', { challenge, ...body }));
  await answer({ method: 'totp', code });
  await answer({ method: 'recovery', code: 'zzzzzzzzzz' });
  expect((await answer({ method: 'recovery', code: codes[0] })).status).toBe(200);
  for (const path of ['/metrics', '/api/auth/me', '/api/auth/sessions', '/openapi.json', '/readyz'])
    await kept(person.client.get(path));
  await kept(person.client.post('/api/auth/totp/enrol'));
  await kept(person.client.post('/api/auth/totp/recovery', { code: 'wrong' }));
  await kept(person.client.post('/api/auth/confirm', { code: codes[1] }));
  expect(await server.stop()).toBe(0);
  const audit = await run({
    args: ['audit', '--data', data, '--schema', join(import.meta.dirname, '../../support/bylaw.yaml')],
  });

  const secrets = [secret, uri, ...codes, challenge, PASSWORD];
  const places: readonly (readonly [string, Buffer])[] = [
    ['answers', Buffer.from(answers.map(({ text, headers }) => `${text}${JSON.stringify([...headers])}`).join('\n'))],
    ['output', Buffer.from(server.output() + server.log() + audit.stdout + audit.stderr)],
    ...(await filesIn(data)),
  ];
  expect(places.length).toBeGreaterThan(50);
  expect(audit.stdout).toContain('second_factor_enrolled');
  // The search finds what is there: the address of the person is in the database and in the mail.
  expect(places.filter(([, bytes]) => bytes.includes(person.email)).length).toBeGreaterThan(1);
  for (const [place, bytes] of places) {
    expect([place, secrets.filter((each) => bytes.includes(each))]).toEqual([place, []]);
  }
});
