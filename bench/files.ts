/**
 * How many MB/s does the service take and give, next to node:http piped to a file and back? The service parses the form, hashes, looks at the type, syncs file
 * and folder, and writes a row; the pipe does none of it. Rounds in turn; the peak memory is what the kernel saw (VmHWM), above what the service held before.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { call } from './movies/client.ts';
import { median } from './support/measure.ts';

const MIB = 1024 * 1024;
const SIZE = 256 * MIB;
const LARGE = 1024 * MIB;
const CHUNK = Buffer.alloc(64 * 1024, 'bytes that are no boundary, ');
const HEAD = Buffer.from(
  '------WebKitFormBoundary7MA4YWxkTrZu0gW\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: application/octet-stream\r\n\r\n',
);
const TAIL = Buffer.from('\r\n------WebKitFormBoundary7MA4YWxkTrZu0gW--\r\n');
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

interface Running {
  readonly url: string;
  readonly process: ChildProcess;
}

async function start(file: string, args: readonly string[]): Promise<Running> {
  const child = spawn(process.execPath, [file, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, BYLAW_RATE_LIMIT: 'off' },
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout!.on('data', (chunk: Buffer) => {
      const match = /listening on (\S+)/.exec(chunk.toString());
      if (match) resolve(match[1]!);
    });
    child.on('exit', (code) => reject(new Error(`${file} ended with exit code ${code}`)));
  });
  return { url, process: child };
}

type Headers = Readonly<Record<string, string | number>>;

/** → the body of the answer. */
function send(url: string, { size, headers }: { readonly size: number; readonly headers: Headers }): Promise<string> {
  return new Promise((resolve, reject) => {
    const length = HEAD.length + size + TAIL.length;
    const sending = httpRequest(url, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW',
        'content-length': length,
      },
    });
    sending.on('error', reject).on('response', (answer) => {
      let body = '';
      answer.on('data', (chunk) => {
        body += chunk;
      });
      answer.on('end', () =>
        answer.statusCode === 201 ? resolve(body) : reject(new Error(`${answer.statusCode} ${body}`)),
      );
    });
    sending.write(HEAD);
    let left = size;
    const more = (): void => {
      while (left > 0) {
        left -= CHUNK.length;
        if (!sending.write(CHUNK)) return void sending.once('drain', more);
      }
      sending.end(TAIL);
    };
    more();
  });
}

/** → how many bytes came. */
function fetchAll(url: string, headers: Headers): Promise<number> {
  return new Promise((resolve, reject) => {
    const asking = httpRequest(url, { headers }, (answer) => {
      let bytes = 0;
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      answer.on('end', () => resolve(bytes));
    });
    asking.on('error', reject).end();
  });
}

interface Contender {
  readonly name: string;
  readonly up: () => Promise<string>;
  readonly down: (made: string) => Promise<number>;
  readonly remove: (made: string) => Promise<unknown>;
  readonly rates: { readonly up: number[]; readonly down: number[] };
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [T, number]> {
  const began = performance.now();
  const result = await work();
  return [result, SIZE / 1e6 / ((performance.now() - began) / 1000)];
}

/** Bytes that the process held at most since its peak was reset, and holds now. Linux only. */
function memoryOf(pid: number): { readonly peak: number; readonly now: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kibOf = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]);
  return { peak: kibOf('VmHWM') * 1024, now: kibOf('VmRSS') * 1024 };
}

async function run({ seconds }: { readonly seconds: number }): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-bench-files-'));
  const children: ChildProcess[] = [];
  try {
    const bylaw = await start(here('../src/main.ts'), [
      'serve',
      '--schema',
      here('./servers/files.yaml'),
      '--data',
      join(folder, 'data'),
      '--port',
      '0',
    ]);
    children.push(bylaw.process);
    const pipe = await start(here('./servers/pipe.ts'), [folder]);
    children.push(pipe.process);
    const user = { email: 'bench@example.com', password: 'seven-samurai-1954' };
    await call(`${bylaw.url}/api/auth/register`, { method: 'POST', body: user });
    const token = (await call(`${bylaw.url}/api/auth/login`, { method: 'POST', body: user })).body
      .access_token as string;
    const headers = { authorization: `Bearer ${token}` };
    const upload = (size: number) =>
      send(`${bylaw.url}/api/files`, { size, headers }).then((body) => JSON.parse(body).data.id as string);
    const remove = (id: string) => fetch(`${bylaw.url}/api/files/${id}`, { method: 'DELETE', headers });

    await remove(await upload(64 * MIB));
    // 5: the peak is counted from here (proc_pid_clear_refs(5)); starting the embedded database took more than any upload.
    writeFileSync(`/proc/${bylaw.process.pid!}/clear_refs`, '5');
    const before = memoryOf(bylaw.process.pid!);
    const large = await upload(LARGE);
    const growth = memoryOf(bylaw.process.pid!).peak - before.now;
    await remove(large);

    const contenders: readonly Contender[] = [
      {
        name: 'bylaw (form, sha256, fsync, row)',
        up: () => upload(SIZE),
        down: (id) => fetchAll(`${bylaw.url}/api/files/${id}/content`, headers),
        remove,
        rates: { up: [], down: [] },
      },
      {
        name: 'node:http piped to a file',
        up: () => send(pipe.url, { size: SIZE, headers: {} }),
        down: (name) => fetchAll(`${pipe.url}/${name}`, {}),
        remove: (name) => rm(join(folder, name)),
        rates: { up: [], down: [] },
      },
    ];
    const end = performance.now() + seconds * 1000;
    for (let round = 0; round < 4 || performance.now() < end; round++) {
      // The second contender finds the machine as the first left it, so they take turns at being first.
      for (const { up, down, remove, rates } of round % 2 === 0 ? contenders : contenders.toReversed()) {
        const [made, upRate] = await timed(up);
        const [bytes, downRate] = await timed(() => down(made));
        if (bytes < SIZE) throw new Error(`${bytes} bytes came back`);
        // Round 0 warms up.
        if (round > 0) rates.up.push(upRate);
        if (round > 0) rates.down.push(downRate);
        await remove(made);
      }
    }
    for (const { name, rates } of contenders) {
      console.log(
        `${name.padEnd(34)} up ${median(rates.up).toFixed(0).padStart(5)} MB/s   down ${median(rates.down).toFixed(0).padStart(5)} MB/s`,
      );
    }
    const [own, plain] = contenders as readonly [Contender, Contender];
    verdictAtLeast('up, of the pipe', ratio(own.rates.up, plain.rates.up), 0.7);
    verdictAtLeast('down, of the pipe', ratio(own.rates.down, plain.rates.down), 0.7);
    const grown = growth / MIB;
    console.log(
      `${grown <= 64 ? 'held  ' : 'MISSED'} growth of memory by an upload of 1 GiB: ${grown.toFixed(1)} MiB (at most 64)`,
    );
    if (grown > 64) process.exitCode = 1;
  } finally {
    for (const child of children) child.kill('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The median of the ratios of paired rounds. */
const ratio = (a: readonly number[], b: readonly number[]): number => median(a.map((value, i) => value / b[i]!));

function verdictAtLeast(label: string, value: number, limit: number): void {
  const held = value >= limit;
  console.log(`${held ? 'held  ' : 'MISSED'} ${label}: ${value.toFixed(2)} × (at least ${limit})`);
  if (!held) process.exitCode = 1;
}

export default { name: 'files', question: 'MB/s of files up and down, next to node:http piped to a file', run };
