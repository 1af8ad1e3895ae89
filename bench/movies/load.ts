/** `npm run sample:movies [-- --url URL]`: loads the 3,201 films into a running service, or into one that it starts and leaves running. */
import { fileURLToPath } from 'node:url';
import { SingleBar } from 'cli-progress';
import { readOptions } from '../../test/support/run-options.ts';
import { startServer } from '../support/server.ts';
import { call, loadFilms } from './client.ts';
import { readFilms } from './films.ts';

const { values } = readOptions('npm run sample:movies --', {
  options: {
    url: { type: 'string' },
    data: { type: 'string', default: 'data/movies' },
    port: { type: 'string', default: '8090' },
    count: { type: 'string' },
    exit: { type: 'boolean', default: false },
  },
});

const PASSWORD = 'seven-samurai-1954';
const users = ['ada', 'ben', 'cleo'].map((name) => ({ email: `${name}@movies.example`, password: PASSWORD }));

/** Starts `bylaw serve` with the films' schema and resolves with its address. */
async function startService(): Promise<{ url: string; stop: () => void }> {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const schema = fileURLToPath(new URL('./bylaw.yaml', import.meta.url));
  const flags = ['--schema', schema, '--data', values.data, '--port', values.port];
  const server = await startServer(main, ['serve', ...flags]).catch(() => {
    console.error(
      `the service did not start; is there one on port ${values.port}? Another port: \`npm run sample:movies -- --port 8091\`;` +
        ` why: \`npm start -- ${flags.join(' ')}\``,
    );
    process.exit(1);
  });
  return { url: server.url, stop: () => server.process.kill('SIGTERM') };
}

const films = readFilms(users.length, values.count === undefined ? undefined : Number(values.count));
const service =
  values.url === undefined ? await startService() : { url: values.url.replace(/\/$/, ''), stop: () => {} };
const bar = new SingleBar({
  format: 'films [{bar}] {value}/{total} · {duration_formatted} · {speed}/s',
  noTTYOutput: true,
  notTTYSchedule: 5000,
});
const started = performance.now();
bar.start(films.length, 0, { speed: 0 });
const loaded = await loadFilms({
  baseUrl: service.url,
  films,
  users,
  onProgress: (done) => bar.update(done, { speed: Math.round(done / ((performance.now() - started) / 1000)) }),
}).catch((error: unknown) => {
  service.stop();
  throw error;
});
bar.stop();

let kept = 0;
for (const [owner, token] of loaded.tokens.entries()) {
  const counted = await call(`${service.url}/api/films?limit=1&owner=${loaded.userIds[owner]}`, {
    token,
    headers: { prefer: 'count=exact' },
  });
  kept += counted.body.page.total;
}
console.log(
  `${films.length} films sent, ${kept} kept, ${new Set(loaded.ids).size} distinct ids, ${((performance.now() - started) / 1000).toFixed(1)} s`,
);
console.log(`log in as ${users[0]!.email} with the password ${PASSWORD} at ${service.url}`);
if (kept !== films.length) process.exitCode = 1;
if (values.exit || process.exitCode === 1) service.stop();
else if (values.url === undefined) console.log('the service goes on; Ctrl-C stops it');
