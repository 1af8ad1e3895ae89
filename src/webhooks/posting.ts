/** Posts a body to the address of a webhook: once, without following redirects, and to permitted addresses only. */
import type { Agent, IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { codeOf } from '../thrown.ts';
import { isPublicAddress, lookupAmong, RefusedAddress } from './public-addresses.ts';

/** Not imported: its ES module would load all of `fetch`, a tenth of a second of each start. */
const http = process.getBuiltinModule('node:http');

/** Undefined in place of an error: the receiver has taken the body. */
export interface PostResult {
  readonly error?: string;
  /** The receiver wants no more of it. */
  readonly isFinal?: boolean;
  /** Seconds that the receiver wants to wait. */
  readonly retryAfter?: number | undefined;
}
export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const POST_TIMEOUT_MS = 15_000;
const MOST_SOCKETS = 20;

export class Poster {
  readonly #allowsPrivate: boolean;
  readonly #secure: https.Agent;
  readonly #plain: Agent;

  constructor(allowsPrivate: boolean) {
    this.#allowsPrivate = allowsPrivate;
    const shared = { keepAlive: true, maxSockets: MOST_SOCKETS };
    this.#secure = new https.Agent({ ...shared, lookup: lookupAmong((address) => this.#admits(address, true)) });
    this.#plain = new http.Agent({ ...shared, lookup: lookupAmong((address) => this.#admits(address, false)) });
  }

  async post({ url: text, headers, body }: Post): Promise<PostResult> {
    const url = new URL(text);
    const isSecure = url.protocol === 'https:';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    // No name is looked up for a literal address.
    if (isIP(host) !== 0 && !this.#admits(host, isSecure)) return { error: REFUSED_ADDRESS };
    const [client, agent] = isSecure ? [https, this.#secure] : [http, this.#plain];
    const signal = AbortSignal.timeout(POST_TIMEOUT_MS);
    return new Promise((resolve) => {
      const request = client.request(url, {
        method: 'POST',
        agent,
        signal,
        headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      });
      request.on('response', (response) => {
        // Its content says nothing that is needed, and may be endless.
        response.on('error', () => undefined);
        const late = setTimeout(() => response.destroy(), ANSWER_DRAIN_MS);
        response.resume().once('close', () => clearTimeout(late));
        resolve(postOutcome(response));
      });
      request.on('error', (error) => resolve({ error: signal.aborted ? NO_ANSWER : reasonOfNoConnection(error) }));
      request.end(body);
    });
  }

  close(): void {
    this.#secure.destroy();
    this.#plain.destroy();
  }

  /** Without TLS, nothing leaves the private network. */
  #admits(address: string, isSecure: boolean): boolean {
    return isPublicAddress(address) ? isSecure : this.#allowsPrivate;
  }
}

/** Milliseconds for the rest of an answer; a longer one costs its connection. */
const ANSWER_DRAIN_MS = 1_000;
const NO_ANSWER = `no answer within ${POST_TIMEOUT_MS / 1000} s`;
const REFUSED_ADDRESS =
  'the address is not one that may be posted to: public ones over https; with --allow-private, those of private networks too';

function reasonOfNoConnection(error: Error): string {
  if (error instanceof RefusedAddress) return REFUSED_ADDRESS;
  return `the connection failed (${codeOf(error) ?? 'unknown'})`;
}

const GONE = 410;

function postOutcome({ statusCode = 0, headers }: IncomingMessage): PostResult {
  if (statusCode >= 200 && statusCode < 300) return {};
  const wanted = Number(headers['retry-after']);
  return {
    error: `the receiver answered ${statusCode}`,
    isFinal: statusCode === GONE,
    retryAfter: Number.isFinite(wanted) && wanted > 0 ? wanted : undefined,
  };
}
