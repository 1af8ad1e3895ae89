/**
 * The functions of a checkout that one warm request runs, from the socket to the bytes of its
 * answer, by V8's precise coverage. The service serves the checkout's sample schema on the embedded
 * database in this process; the thread of the embedded engine is not counted.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { type Profiler, Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export interface Walk {
  readonly name: string;
  /** Named functions that ran, each once, by the path of their file. */
  readonly files: ReadonlyMap<string, readonly string[]>;
}

interface RunningService {
  readonly url: string;
  stop(): Promise<void>;
}

interface ServiceModule {
  createService(options: object): Promise<RunningService>;
}

const ENTRY = 'src/exports/service.ts';
const ADMIN = { email: 'admin@figures.test', password: 'correct horse battery' };
/** Enough for every cache, and for a statement that is prepared after some runs. */
const WARM_UP_REQUESTS = 30;
/** The least of them counts: a timer of the service may fire during a request. */
const MEASURED_REQUESTS = 5;
const DOCUMENTS = 20;

type Send = (method: string, path: string, body?: object) => Promise<unknown>;

/** Throws for a checkout without the entry point. */
export async function measureWalks(root: string): Promise<readonly Walk[]> {
  const { createService } = (await import(pathToFileURL(join(root, ENTRY)).href)) as ServiceModule;
  const data = await mkdtemp(join(tmpdir(), 'bylaw-figures-'));
  const schema = join(root, 'bylaw.yaml');
  const service = await createService({ schema, data, admin: ADMIN, rateLimit: false });
  try {
    return await walksOf(root, service.url);
  } finally {
    await service.stop();
    await rm(data, { recursive: true, force: true });
  }
}

async function walksOf(root: string, url: string): Promise<readonly Walk[]> {
  const send = await signedIn(url);
  const created: string[] = [];
  for (let i = 0; i < DOCUMENTS; i++) {
    const { data } = (await send('POST', '/api/documents', { data: { title: `Document ${i}`, score: i } })) as {
      readonly data: { readonly id: string };
    };
    created.push(data.id);
  }
  let score = 0;
  const requests = {
    'GET list': () => send('GET', '/api/documents?status=draft&limit=5'),
    'PATCH of an int': () => send('PATCH', `/api/documents/${created[0]}`, { data: { score: ++score } }),
  };
  const coverage = new Session();
  coverage.connect();
  const walks: Walk[] = [];
  await coverage.post('Profiler.enable');
  for (const [name, request] of Object.entries(requests)) {
    for (let i = 0; i < WARM_UP_REQUESTS; i++) await request();
    const runs: Walk[] = [];
    while (runs.length < MEASURED_REQUESTS) {
      await coverage.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
      // The start takes long enough for what a node remembers of a session for a second.
      await request();
      await coverage.post('Profiler.takePreciseCoverage');
      await request();
      const { result } = await coverage.post('Profiler.takePreciseCoverage');
      await coverage.post('Profiler.stopPreciseCoverage');
      runs.push({ name, files: functionsThatRan(root, result) });
    }
    walks.push(runs.reduce((least, run) => (functionsOf(run) < functionsOf(least) ? run : least)));
  }
  coverage.disconnect();
  return walks;
}

async function signedIn(url: string): Promise<Send> {
  const headers: Record<string, string> = { 'content-type': 'application/json', 'accept-encoding': 'identity' };
  const send: Send = async (method, path, body) => {
    const answer = await fetch(url + path, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  };
  const { access_token: token } = (await send('POST', '/api/auth/login', ADMIN)) as { readonly access_token: string };
  headers.authorization = `Bearer ${token}`;
  return send;
}

function functionsThatRan(root: string, scripts: readonly Profiler.ScriptCoverage[]): Walk['files'] {
  const files = new Map<string, string[]>();
  for (const { url, functions } of scripts) {
    if (!url.startsWith('file:')) continue;
    const path = relative(root, fileURLToPath(url));
    if (!/^(?:src|grammar)\//.test(path)) continue;
    const ran = functions.filter(({ functionName, ranges: [range] }) => functionName !== '' && range!.count > 0);
    if (ran.length > 0) files.set(path, ran.map(({ functionName }) => functionName).sort());
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const functionsOf = ({ files }: Walk): number => [...files.values()].reduce((sum, { length }) => sum + length, 0);

export const countOf = (walk: Walk): string => `${walk.files.size} / ${functionsOf(walk)}`;

export function listOf(walk: Walk): string {
  const lines = [...walk.files].map(([path, functions]) => `  ${path}: ${functions.join(', ')}\n`);
  return `${walk.name}: ${countOf(walk)}\n${lines.join('')}`;
}
