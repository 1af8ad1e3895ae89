/** `webhooks:` → the addresses that are sent changes. The key that each names decides what it may see. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { walksRelations } from '../../policy/analyse/policy-needs.ts';
import { compileFilter } from '../../policy/filters/filter.ts';
import type { Catalog } from '../../policy/types.ts';
import type { DocumentPath } from '../file/issue.ts';
import type { SchemaFile } from '../file/shape.ts';
import type { SourceText } from '../file/source.ts';
import { type Schema, WEBHOOK_EVENTS, type Webhook } from '../model/model.ts';
import { nameIssue } from '../model/names.ts';

type WebhookShape = NonNullable<SchemaFile['webhooks']>[string];

interface WebhooksPlace {
  readonly source: SourceText;
  readonly catalog: Catalog;
  readonly collections: Schema['collections'];
  readonly broken: ReadonlySet<string>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Standard Webhooks: 24 to 64 bytes. */
const SIGNING_SECRET = /^whsec_(?<bytes>[A-Za-z0-9+/]{32,88}={0,2})$/;
const SIGNING_SECRET_BYTES = { least: 24, most: 64 };

export function readWebhooks({ webhooks = {} }: SchemaFile, place: WebhooksPlace): ReadonlyMap<string, Webhook> {
  const read = new Map<string, Webhook>();
  for (const [name, shape] of Object.entries(webhooks)) {
    const webhook = new WebhookReader(place, ['webhooks', name]).read(name, shape);
    if (webhook !== undefined) read.set(name, webhook);
  }
  return read;
}

class WebhookReader {
  readonly #place: WebhooksPlace;
  readonly #path: DocumentPath;

  constructor(place: WebhooksPlace, path: DocumentPath) {
    this.#place = place;
    this.#path = path;
  }

  read(name: string, shape: WebhookShape): Webhook | undefined {
    const issue = nameIssue(name);
    if (issue !== undefined) return this.#place.source.report({ ...issue, path: this.#path, at: 'key' });
    const { collection = name, url, events = WEBHOOK_EVENTS, filter, as } = shape;
    this.#checkUrl(url);
    const secrets = this.#secrets(shape);
    if (!this.#hasFeed(collection, shape)) return undefined;
    if (filter !== undefined) this.#checkFilter(filter, collection);
    return { name, collection, url, events, filter, as, secrets };
  }

  #hasFeed(collection: string, shape: WebhookShape): boolean {
    const { collections, broken } = this.#place;
    const found = collections.get(collection);
    if (found?.feed !== undefined) return true;
    const [path, at]: [DocumentPath, 'key' | 'value'] =
      shape.collection === undefined ? [this.#path, 'key'] : [[...this.#path, 'collection'], 'value'];
    if (found !== undefined) {
      const message = `\`${collection}\` has no feed, from whose log events are sent; add \`changes: true\` to it`;
      this.#place.source.report({ code: 'webhook_feed', message, path, at });
    } else if (!broken.has(collection)) {
      const hint = hintOf(nearest(collection, [...collections.keys()]));
      const message = `unknown collection \`${collection}\`${hint}; name one with \`collection:\``;
      this.#place.source.report({ code: 'unknown_collection', message, path, at });
    }
    return false;
  }

  #checkUrl(text: string): void {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isAddress = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.hash === '';
    if (isAddress) return;
    const expected = 'expected a URL such as https://example.com/hooks, without a user and a fragment';
    const message = `\`${text}\` is not an address that can be posted to; ${expected}`;
    this.#place.source.report({ code: 'webhook_url', message, path: [...this.#path, 'url'] });
  }

  #secrets({ secret_env }: WebhookShape): readonly string[] {
    const { env, source } = this.#place;
    const path = [...this.#path, 'secret_env'];
    const secrets = (env[secret_env] ?? '').split(' ').filter((each) => each !== '');
    if (secrets.length === 0) {
      const message = `the environment variable \`${secret_env}\` is not set; set it to the secret that signs`;
      source.report({ code: 'missing_env', message, path });
    } else if (!secrets.every(isSigningSecret)) {
      const expected = '`whsec_` and 24 to 64 bytes in base64, as by `echo whsec_$(openssl rand -base64 32)`';
      const message = `the environment variable \`${secret_env}\` holds no secret; expected ${expected}`;
      source.report({ code: 'webhook_secret', message, path });
    }
    return secrets;
  }

  #checkFilter(text: string, collection: string): void {
    const { source, catalog } = this.#place;
    const path = [...this.#path, 'filter'];
    const { filter, issues } = compileFilter(text, { catalog, collection, params: {} });
    for (const { code, message, span, fix } of issues) source.reportWithin({ code, message, path }, span, fix);
    if (filter === undefined || !walksRelations(filter.checked)) return;
    const message = 'the filter of a webhook compares members of the record itself; remove what follows relations';
    source.report({ code: 'not_logged', message, path });
  }
}

function isSigningSecret(text: string): boolean {
  const bytes = SIGNING_SECRET.exec(text)?.groups?.bytes;
  if (bytes === undefined) return false;
  const { length } = atob(bytes);
  return length >= SIGNING_SECRET_BYTES.least && length <= SIGNING_SECRET_BYTES.most;
}
