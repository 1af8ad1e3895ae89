/** Reads a stream of changes as a program does, and keeps a copy of the list by its events. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Client } from '../support/client.ts';

export interface ReadEvent {
  readonly id: string;
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what is being tested
  readonly data: any;
}

interface FeedInit {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The address of this machine that the request comes from. */
  readonly from?: string;
  /** Reads nothing until `read()`. */
  readonly isSilent?: boolean;
}

export class FeedClient {
  readonly events: ReadEvent[] = [];
  readonly copy = new Map<string, unknown>();
  readonly text: string[] = [];
  readonly headers: Promise<IncomingMessage['headers']>;
  isOver = false;
  readonly #request: ClientRequest;
  readonly #response: Promise<IncomingMessage>;
  #taken = 0;
  #retry = '';

  /** Without `fetch`, which opens another connection for one that it has lost. */
  constructor(client: Client, path: string, init: FeedInit = {}) {
    const { body, headers = {}, from, isSilent = false } = init;
    const json: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
    this.#request = request(client.url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...client.headers, ...headers, ...json },
      agent: false,
      localAddress: from,
    });
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      this.#request.on('response', resolve).on('error', reject);
    });
    this.headers = response.then((answer) => answer.headers);
    this.#response = response;
    response.catch(() => undefined);
    if (!isSilent) void this.read();
    this.#request.end(body === undefined ? undefined : JSON.stringify(body));
  }

  close(): void {
    this.#request.destroy();
  }

  get status(): Promise<number | undefined> {
    return this.#response.then(({ statusCode }) => statusCode);
  }

  /** Reads the events until the stream is over. */
  async read(): Promise<void> {
    try {
      await this.#read(await this.#response);
    } catch {
      // The stream was cut off.
    }
    this.isOver = true;
  }

  get retry(): string {
    return this.#retry;
  }

  get position(): string {
    return this.events.at(-1)!.id;
  }

  /** The next events up to one of this type, without their positions. */
  async until(type: string, ms = 5_000): Promise<readonly (readonly [string, unknown])[]> {
    const end = performance.now() + ms;
    for (;;) {
      const at = this.events.findIndex((event, i) => i >= this.#taken && event.type === type);
      if (at >= 0) {
        const found = this.events.slice(this.#taken, at + 1);
        this.#taken = at + 1;
        return found.map((event) => [event.type, event.data] as const);
      }
      if (performance.now() > end || this.isOver)
        throw new Error(
          `no ${type} came, but ${JSON.stringify(this.events.slice(this.#taken))} of ${this.text.join('')}`,
        );
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** The events within this time that were not taken yet. */
  async rest(ms = 150): Promise<readonly (readonly [string, unknown])[]> {
    await new Promise((resolve) => setTimeout(resolve, ms));
    const found = this.events.slice(this.#taken);
    this.#taken = this.events.length;
    return found.map((event) => [event.type, event.data] as const);
  }

  async #read(answer: IncomingMessage): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of answer) {
      const text = decoder.decode(chunk, { stream: true });
      this.text.push(text);
      const blocks = (rest + text).split('\n\n');
      rest = blocks.pop()!;
      for (const block of blocks) this.#take(block);
    }
  }

  #take(block: string): void {
    const fields = new Map(
      block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const),
    );
    if (fields.has('retry')) this.#retry = fields.get('retry')!;
    if (!fields.has('data')) return;
    const data = JSON.parse(fields.get('data')!);
    const type = fields.get('event')!;
    this.events.push({ id: fields.get('id')!, type, data });
    if (type === 'enter' || type === 'change') this.copy.set(String(data.record.id), data.record);
    if (type === 'leave') this.copy.delete(String(data.id));
  }
}
