/** A plain HTTP client: what was sent is in the test, what came back is returned whole. */
import { withoutTenant } from './cluster/distributed-schema.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Tests look into answers freely.
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what is being tested
  readonly body: any;
}

export interface Sending {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
}

/** Looks at every answer; throws what it finds wrong. */
export type Check = (method: string, path: string, answer: Answer) => void;

export class Client {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly #check: Check | undefined;

  constructor(url: string, headers: Readonly<Record<string, string>> = {}, check?: Check) {
    this.url = url;
    this.headers = headers;
    this.#check = check;
  }

  with(headers: Readonly<Record<string, string>>): Client {
    return new Client(this.url, { ...this.headers, ...headers }, this.#check);
  }

  get(path: string, headers?: Sending['headers']): Promise<Answer> {
    return this.send('GET', path, headers === undefined ? {} : { headers });
  }
  post(path: string, json?: unknown, headers: Sending['headers'] = {}): Promise<Answer> {
    return this.send('POST', path, { headers, ...(json === undefined ? {} : { json }) });
  }
  patch(path: string, json: unknown, headers: Sending['headers'] = {}): Promise<Answer> {
    return this.send('PATCH', path, { headers, json });
  }
  put(path: string, json: unknown, headers: Sending['headers'] = {}): Promise<Answer> {
    return this.send('PUT', path, { headers, json });
  }
  delete(path: string, headers: Sending['headers'] = {}): Promise<Answer> {
    return this.send('DELETE', path, { headers });
  }

  async send(method: string, path: string, { headers = {}, json, raw }: Sending = {}): Promise<Answer> {
    const body = raw ?? (json === undefined ? undefined : JSON.stringify(json));
    const type: Record<string, string> = json === undefined ? {} : { 'Content-Type': 'application/json' };
    const response = await fetch(this.url + path, {
      method,
      redirect: 'manual',
      // `fetch` would ask for compressed answers.
      headers: { 'Accept-Encoding': 'identity', ...type, ...this.headers, ...headers },
      ...(body === undefined ? {} : { body }),
    });
    const sent = await response.text();
    const text = withoutTenant(sent);
    const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
    const answer = {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : undefined,
    };
    // The sent body has the form that the document describes.
    this.#check?.(method, path, isJson && sent !== text ? { ...answer, text: sent, body: JSON.parse(sent) } : answer);
    return answer;
  }
}
