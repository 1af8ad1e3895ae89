/** Sends the requests of a script, and keeps their answers in a form that two databases share. */
import { type Answer, Client } from '../support/client.ts';

/** A request and its answer. Ids, times and opaque texts are replaced by the order of their appearance. */
export interface Recorded {
  readonly request: string;
  readonly status: number;
  readonly body: unknown;
}

export class Recorder {
  readonly steps: Recorded[] = [];
  readonly #url: string;
  readonly #after: (step: Recorded) => Promise<void>;
  readonly #names = new Map<string, string>();
  readonly #clients: typeof Client;

  /** @param after runs after each request */
  constructor(url: string, after: (step: Recorded) => Promise<void> = async () => undefined, clients = Client) {
    this.#url = url;
    this.#clients = clients;
    this.#after = after;
  }

  /** Sends the requests of one person. */
  as(headers: Readonly<Record<string, string>> = {}): RecordingClient {
    return new RecordingClient(new this.#clients(this.#url, headers), (sent, answer) => this.#keep(sent, answer));
  }

  async #keep(request: string, answer: Answer): Promise<void> {
    const step = { request: this.#common(request), status: answer.status, body: this.#commonBody(answer) };
    this.steps.push(step);
    await this.#after(step);
  }

  #commonBody({ body, text }: Answer): unknown {
    return JSON.parse(this.#common(JSON.stringify(body ?? text)));
  }

  #common(text: string): string {
    return text
      .replaceAll(/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g, (id) => this.#nameOf('id', id))
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g, '<T>')
      .replaceAll(
        /("(?:access_token|refresh_token|next_cursor|cursor|secret|url)":")([^"]+)/g,
        (_, key: string, value: string) => `${key}${this.#nameOf('opaque', value)}`,
      );
  }

  #nameOf(kind: string, value: string): string {
    const known = this.#names.get(value) ?? `<${kind}-${this.#names.size + 1}>`;
    this.#names.set(value, known);
    return known;
  }
}

/** The methods of a `Client`, with the request as text. */
export class RecordingClient {
  readonly #client: Client;
  readonly #keep: (request: string, answer: Answer) => Promise<void>;

  constructor(client: Client, keep: (request: string, answer: Answer) => Promise<void>) {
    this.#client = client;
    this.#keep = keep;
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#send('GET', path, { headers });
  }
  post(path: string, json?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#send('POST', path, { headers, ...(json === undefined ? {} : { json }) });
  }
  patch(path: string, json: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#send('PATCH', path, { headers, json });
  }

  put(path: string, json: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#send('PUT', path, { headers, json });
  }
  delete(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#send('DELETE', path, { headers });
  }

  /** A file with its metadata. */
  async upload(path: string, bytes: string, data?: object): Promise<Answer> {
    const form = new FormData();
    if (data !== undefined) form.set('data', JSON.stringify(data));
    form.set('file', new Blob([bytes], { type: 'text/plain' }), 'a.txt');
    const encoded = new Response(form);
    const type = encoded.headers.get('content-type')!;
    const raw = new Uint8Array(await encoded.arrayBuffer());
    const answer = await this.#client.send('POST', path, { headers: { 'Content-Type': type }, raw });
    await this.#keep(`POST ${path} ${bytes}`, answer);
    return answer;
  }

  async #send(method: string, path: string, sending: Parameters<Client['send']>[2]): Promise<Answer> {
    const answer = await this.#client.send(method, path, sending);
    const { json, headers = {} } = sending ?? {};
    // A version is opaque, and differs by the secret of the database.
    const { 'If-Match': _, ...others } = headers;
    const parts = [method, path, ...(json === undefined ? [] : [JSON.stringify(json)]), JSON.stringify(others)];
    await this.#keep(parts.join(' '), answer);
    return answer;
  }
}
