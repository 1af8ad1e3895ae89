/**
 * The self time of a processor profile of V8 by layer, and what a sampled heap says of allocations. A native function counts for the one
 * that called it, but for the system calls that write: their time is mostly that of waking up who reads.
 */
import { readFileSync } from 'node:fs';

interface Called {
  readonly callFrame: { readonly functionName: string; readonly url: string };
}
interface ProfileNode extends Called {
  readonly id: number;
  readonly children?: readonly number[];
}
/** Bytes that the function itself asked for. */
interface AllocationNode extends Called {
  readonly selfSize: number;
  readonly children: readonly AllocationNode[];
}
interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The first that matches the address of a function. */
const LAYERS: readonly (readonly [layer: string, address: RegExp])[] = [
  ['pg driver', /node_modules\/pg/],
  [
    'Koa and its packages',
    /node_modules\/(?:koa|@koa|co-body|raw-body|type-is|cookies|delegates|accepts|statuses|content-type|on-finished|parseurl)/,
  ],
  ['log (pino)', /node_modules\/(?:pino|sonic-boom|thread-stream)|src\/http\/log/],
  ['metrics (prom-client)', /node_modules\/prom-client|src\/http\/metrics/],
  ['other packages', /node_modules/],
  ['own database driver', /src\/database/],
  ['SQL text', /src\/sql|src\/policy\/emit/],
  ['records', /src\/records/],
  ['policy', /src\/policy|src\/schema/],
  ['auth', /src\/auth/],
  ['own http', /src\/http/],
  ['routes', /src\/routes|src\/describe/],
  ['node:http', /^node:_http|^node:internal\/http/],
  ['node:crypto', /^node:(?:internal\/)?crypto/],
  ['node: timers, promises, events', /^node:(?:internal\/timers|internal\/process|events|async_hooks|internal\/async)/],
  ['node: streams, sockets', /^node:/],
];

const WRITES = /^write(?:v|Buffer|(?:Utf8|Latin1|Ascii|Ucs2)String)$/;

export interface LayerTime {
  readonly layer: string;
  readonly us: number;
}
export interface LayerBytes {
  readonly layer: string;
  readonly bytes: number;
}

/** The busiest first, without idle time. */
export function layersOf(file: string): readonly LayerTime[] {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as Profile;
  const layers = new Map<number, string>();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const walk = (node: ProfileNode, above: string): void => {
    const layer = layerOf(node, above);
    layers.set(node.id, layer);
    for (const child of node.children ?? []) walk(byId.get(child)!, layer);
  };
  walk(nodes[0]!, 'program');
  const times = new Map<string, number>();
  samples.forEach((id, i) => {
    const layer = layers.get(id)!;
    times.set(layer, (times.get(layer) ?? 0) + timeDeltas[i]!);
  });
  times.delete('idle');
  return [...times].map(([layer, us]) => ({ layer, us })).sort((a, b) => b.us - a.us);
}

/** The largest allocations come first. */
export function allocationsOf(file: string): readonly LayerBytes[] {
  const { head } = JSON.parse(readFileSync(file, 'utf8')) as { readonly head: AllocationNode };
  const layers = new Map<string, number>();
  const walk = (node: AllocationNode, above: string): void => {
    const layer = layerOf(node, above);
    layers.set(layer, (layers.get(layer) ?? 0) + node.selfSize);
    for (const child of node.children) walk(child, layer);
  };
  walk(head, 'program');
  return [...layers].map(([layer, bytes]) => ({ layer, bytes })).sort((a, b) => b.bytes - a.bytes);
}

function layerOf({ callFrame: { functionName, url } }: Called, above: string): string {
  if (functionName === '(idle)') return 'idle';
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (functionName === '(program)') return 'program';
  if (url === '') return WRITES.test(functionName) ? 'system calls that write' : above;
  return LAYERS.find(([, address]) => address.test(url))?.[0] ?? 'other';
}
