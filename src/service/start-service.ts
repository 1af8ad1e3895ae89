/**
 * The running service: its parts start in order and stop in the reverse order. Its schema can be
 * replaced while it runs.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPasswordPool } from '../auth/accounts/passwords.ts';
import type { SetupOffer } from '../auth/accounts/setup-offer.ts';
import { Auth, type Mail, type PasswordPool } from '../auth/auth.ts';
import { announceIssuer } from '../auth/issuer-announcements.ts';
import { ChangeFeeds } from '../changes/change-feeds.ts';
import { ownStreamPlaces, type StreamBounds, type StreamPlaces } from '../changes/stream-places.ts';
import type { Config } from '../config.ts';
import { type Database, inLane } from '../database/contract.ts';
import { openapiOf } from '../describe/openapi-document.ts';
import { createFiles } from '../files/files.ts';
import { placeOfDatabase } from '../files/storage/database-place.ts';
import { openStorage } from '../files/storage/open-storage.ts';
import { PublicFiles } from '../http/answer/public-files.ts';
import type { App } from '../http/app.ts';
import { jsonBodyReader } from '../http/body.ts';
import { admissionOfKey } from '../http/gate.ts';
import type { Log } from '../http/observe/log.ts';
import { createMetrics, type Metrics } from '../http/observe/metrics.ts';
import { addressReader } from '../http/request.ts';
import { type ArrivalLimits, InFlight } from '../http/server/client-limits.ts';
import { checkCookieSite } from '../http/server/cookie-site.ts';
import { HttpServer } from '../http/server/server.ts';
import type { Workshop } from '../http/workshop.ts';
import { memoized } from '../memoized.ts';
import { applyMigration } from '../migrations/apply-migration.ts';
import { ownersNotes } from '../migrations/migration.ts';
import { hasAllOf } from '../migrations/readiness.ts';
import { schemaServedBy } from '../migrations/unmanaged/served-schema.ts';
import { Problem } from '../problem.ts';
import { deletedRecordsOf } from '../records/deleted-records.ts';
import { pruneHistory } from '../records/history.ts';
import { KeptAnswers } from '../records/idempotency.ts';
import { createRecords } from '../records/records.ts';
import { routes, servedRoutes } from '../routes/index.ts';
import type { Schema } from '../schema/model/model.ts';
import { Webhooks } from '../webhooks/webhooks.ts';
import { afterWrites } from './after-writes.ts';
import { streamBoundsOf } from './stream-bounds.ts';
import { startOptions } from './system-tables.ts';
import { packageVersion } from './version.ts';

const DRAIN_MS = 10_000;
const SWEEP_ANSWERS_EVERY_MS = 600_000;
/** How long a migration waits for running requests. */
const PAUSE_PATIENCE_MS = 2_000;

export interface ServiceParts {
  readonly config: Config;
  readonly schema: Schema;
  /** Open; closed by `stop`. */
  readonly db: Database;
  readonly log: Log;
  /** The metrics of all workers, if there are several. */
  readonly readMetrics?: () => Promise<string>;
  /** Default: this process serves alone. */
  readonly streamPlacesOf?: (bounds: StreamBounds) => StreamPlaces;
  /** Default: 30 s for a JSON body. */
  readonly arrival?: ArrivalLimits;
  /** Default: argon2id at its full cost. */
  readonly passwords?: PasswordPool;
  /** Default: the first administrator is not made over HTTP. */
  readonly setup?: SetupOffer;
  /** The tools of `bylaw dev`. */
  readonly workshop?: Workshop;
  /** Called for each mail that is written to a file for lack of an SMTP server. */
  readonly onMail?: (mail: Mail) => void;
}

export interface Service {
  /** The current one; `replaceSchema` makes another. */
  readonly app: App;
  /** Has the actual port, also if port 0 was requested. */
  readonly url: string;
  /**
   * Serves another schema from now on; sessions, files and connections stay. Running requests end with
   * the former schema. During `migrate`, which migrates the database to the new schema, new requests
   * wait. If `migrate` throws, so does this, and the former schema stays.
   */
  replaceSchema(schema: Schema, migrate?: () => Promise<void>): Promise<void>;
  /**
   * Accepts no new connection, finishes running requests (10 s at most), closes the database. For
   * `farewellMs` before that, it still serves: `/readyz` answers 503, and responses ask clients to
   * close their connections. Default: 0.
   */
  stop(farewellMs?: number): Promise<void>;
}

/** Migration → keys and sessions → first admin → listen. */
export async function startService(parts: ServiceParts): Promise<Service> {
  const { db, log } = parts;
  await applyMigration(db, parts.schema, { ...startOptions(), onNote: (note) => log.logger.warn(note) });
  const config = { ...parts.config };
  for (const { text, sql } of await ownersNotes(db, parts.schema)) if (sql === undefined) log.logger.warn(text);
  const apps = new Apps({ ...parts, schema: await schemaServedBy(db, parts.schema) }, config);
  let app = await apps.first();
  const http = new HttpServer(app, (served) => servedRoutes(config, served.schema), parts.arrival);
  const url = await listen(http.server, config);
  // INVARIANT: no request was served before this; with port 0 the base URL is known only now.
  if (!parts.config.baseUrlGiven) config.baseUrl = url;
  app.auth.startSending();
  const warn = (message: string): void => log.logger.warn(message);
  const stopAnnouncements = db.kind === 'postgres' ? await announceIssuer(db, config.baseUrl, warn) : undefined;
  const sweeping = startSweeping(db, () => app);
  const stop = async (farewellMs = 0): Promise<void> => {
    clearInterval(sweeping);
    apps.isStopping = true;
    const swept = app.files.close();
    app.feeds?.stop();
    await http.drain(farewellMs, DRAIN_MS);
    await swept;
    await apps.closeWebhooks();
    await app.feeds?.close();
    await app.auth.close();
    await stopAnnouncements?.();
    await db.close();
    log.flush();
  };
  return {
    get app() {
      return app;
    },
    url,
    async replaceSchema(schema, migrate) {
      const before = app;
      const next = await apps.next(await schemaServedBy(db, schema), before);
      // Their readers come back, and learn by their positions whether the rules have changed.
      before.feeds?.endStreams();
      await apps.closeWebhooks();
      const resume = migrate === undefined ? undefined : await http.pause(PAUSE_PATIENCE_MS);
      try {
        await migrate?.();
        app = await apps.withFeeds(next);
        app.auth.startSending();
        // Its pending requests still need the news of ended sessions.
        void http.replace(app).then(() => Promise.all([before.auth.close(), before.feeds?.close()]));
      } catch (error) {
        await next.auth.close();
        apps.openWebhooks(before);
        throw error;
      } finally {
        resume?.();
      }
    },
    stop: memoized(stop),
  };
}

/** Deletes kept answers and versions of records past their time, as the schema of the current app says. */
function startSweeping(db: Database, currentApp: () => App): NodeJS.Timeout {
  const sweep = async (): Promise<void> => {
    const { kept, schema } = currentApp();
    await kept.sweep(schema);
    await pruneHistory(db, schema);
  };
  return setInterval(() => void sweep().catch(() => undefined), SWEEP_ANSWERS_EVERY_MS).unref();
}

/** Creates an app for a schema. Parts that depend on no schema are created once. */
class Apps {
  readonly #parts: ServiceParts;
  /** The base URL is written into it later if the port is 0. */
  readonly #config: Config;
  readonly #passwords: PasswordPool;
  readonly #inFlight = new InFlight();
  #wake: (() => void) | undefined;
  #isWaking = false;
  #webhooks: Webhooks | undefined;
  isStopping = false;

  constructor(parts: ServiceParts, config: Config) {
    this.#parts = parts;
    this.#config = config;
    this.#passwords = parts.passwords ?? createPasswordPool();
  }

  async first(): Promise<App> {
    const { db, log, schema, readMetrics } = this.#parts;
    const config = this.#config;
    const metrics = createMetrics(readMetrics);
    const auth = await this.#openAuth(schema, metrics);
    if (config.admin !== undefined) await auth.admin.ensureAdmin(config.admin.email, config.admin.password);
    const files = await createFiles({
      db,
      schema,
      openStorage: (storeId) => openStorage(config, storeId),
      place: await placeOfDatabase(db, config),
      onError: (what, error) => log.logger.error({ error: String(error) }, what),
    });
    const feeds = await this.#openFeeds(schema, metrics);
    const app = this.#app({ schema, auth, files, feeds, metrics, kept: await KeptAnswers.open(db) });
    this.openWebhooks(app);
    return app;
  }

  async next(schema: Schema, { files, metrics, kept }: App): Promise<App> {
    const auth = await this.#openAuth(schema, metrics);
    return this.#app({ schema, auth, files: files.withSizes(schema.uploads.images), feeds: undefined, metrics, kept });
  }

  /** The tables of the schema exist. Writes wake the streams from now on. */
  async withFeeds(app: App): Promise<App> {
    const withFeeds = { ...app, feeds: await this.#openFeeds(app.schema, app.metrics) };
    this.openWebhooks(withFeeds);
    return withFeeds;
  }

  /** Their tables and the change log exist. */
  openWebhooks({ schema, auth, feeds, metrics }: App): void {
    if (feeds === undefined || schema.webhooks.size === 0) return;
    const { db, log } = this.#parts;
    const webhooks = new Webhooks({
      db,
      schema,
      allowsPrivate: this.#config.allowPrivate,
      userAgent: `bylaw/${packageVersion()}`,
      accessOf: async ({ as, collection }) => {
        try {
          const caller = await auth.apiKeys.callerOf(as);
          return admissionOfKey(schema, caller, schema.collections.get(collection)!).access();
        } catch (error) {
          if (error instanceof Problem && (error.status === 401 || error.status === 403)) return undefined;
          throw error;
        }
      },
      observer: metrics.webhooks,
      warn: (message) => log.logger.warn(message),
      onError: (what, error) => log.logger.error({ error: String(error) }, what),
    });
    feeds.onNews = () => webhooks.wake();
    this.#webhooks = webhooks;
  }

  async closeWebhooks(): Promise<void> {
    await this.#webhooks?.close();
    this.#webhooks = undefined;
  }

  async #openFeeds(schema: Schema, { feeds: observer }: Metrics): Promise<ChangeFeeds | undefined> {
    const { db, log, streamPlacesOf = ownStreamPlaces } = this.#parts;
    // A restored folder is another one, whether or not its files are in it.
    const place = await placeOfDatabase(db, { ...this.#config, files: this.#config.files ?? this.#config.data });
    const places = streamPlacesOf(streamBoundsOf(schema, this.#config));
    const onError = (what: string, error: unknown): void => log.logger.error({ error: String(error) }, what);
    const feeds = await ChangeFeeds.open({ db, schema, place, places, observer, onError });
    this.#wake = feeds && (() => feeds.wake());
    if (feeds !== undefined && !this.#isWaking) this.#wakeAfterWrites();
    return feeds;
  }

  /** Without feeds, no write calls one function more. */
  #wakeAfterWrites(): void {
    const { db } = this.#parts;
    this.#isWaking = true;
    if (db.kind === 'embedded') {
      // Nobody else writes to it, so its streams never look for news in vain.
      afterWrites(db, () => this.#wake?.());
      return;
    }
    const note = db.noteWrite.bind(db);
    db.noteWrite = (callerId) => {
      this.#wake?.();
      return note(callerId);
    };
  }

  async #openAuth(schema: Schema, { mails }: Metrics): Promise<Auth> {
    const { db, setup, onMail } = this.#parts;
    const config = this.#config;
    checkCookieSite(schema.cookie, config);
    const auth = await Auth.open({ db, schema, config, passwords: this.#passwords, setup, mails, onMail });
    mails.watchQueue(() => auth.outbox.size());
    return auth;
  }

  #app(made: Pick<App, 'schema' | 'auth' | 'files' | 'feeds' | 'metrics' | 'kept'>): App {
    const { db, log, arrival, workshop } = this.#parts;
    const { schema, auth, files, metrics } = made;
    const { publicFolder } = this.#config;
    return {
      ...made,
      config: this.#config,
      db,
      records: createRecords(db, schema, {
        ...auth.userHooks,
        onFilesRemoved: files.discard,
        onUnindexed: metrics.countUnindexed,
      }),
      deleted: deletedRecordsOf(db, schema),
      log: log.logger,
      inFlight: this.#inFlight,
      isReady: () => hasAllOf(inLane(db, 'urgent'), schema),
      isStopping: () => this.isStopping,
      addressOf: addressReader(schema.proxies),
      version: packageVersion(),
      workshop,
      document: memoized(() => openapiOf(schema, routes, packageVersion())),
      readJson: jsonBodyReader(schema.limits.body, arrival?.bodyMs),
      publicFiles: publicFolder === undefined ? undefined : new PublicFiles(publicFolder),
    };
  }
}

async function listen(server: Server, { host, port }: Config): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const { port: taken } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${taken}`;
}
