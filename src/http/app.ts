/** Everything that a handler may need, made once for each schema. */
import type { Auth } from '../auth/auth.ts';
import type { ChangeFeeds } from '../changes/change-feeds.ts';
import type { Config } from '../config.ts';
import type { Database } from '../database/contract.ts';
import type { Files } from '../files/files.ts';
import type { FindDeleted } from '../records/deleted-records.ts';
import type { KeptAnswers } from '../records/idempotency.ts';
import type { Records } from '../records/records.ts';
import type { Schema } from '../schema/model/model.ts';
import type { PublicFiles } from './answer/public-files.ts';
import type { BodyReader } from './body.ts';
import type { Logger } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { AddressReader } from './request.ts';
import type { InFlight } from './server/client-limits.ts';
import type { Workshop } from './workshop.ts';

export interface App {
  readonly config: Config;
  readonly schema: Schema;
  readonly db: Database;
  readonly records: Records;
  readonly deleted: FindDeleted;
  /** Answers under idempotency keys. */
  readonly kept: KeptAnswers;
  readonly files: Files;
  /** Undefined: no collection has a feed. */
  readonly feeds: ChangeFeeds | undefined;
  readonly auth: Auth;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly inFlight: InFlight;
  /** Resolves to true if the database holds all that the schema needs. */
  readonly isReady: () => Promise<boolean>;
  /** Returns true shortly before the service takes no new work; a balancer should send requests elsewhere. */
  readonly isStopping: () => boolean;
  /** Reads the client's address; `X-Forwarded-For` counts from configured proxies only. */
  readonly addressOf: AddressReader;
  /** The version of this package. */
  readonly version: string;
  /** Given under `bylaw dev`. */
  readonly workshop: Workshop | undefined;
  /** The OpenAPI document of the routes. */
  readonly document: () => object;
  /** Reads a JSON body strictly. */
  readonly readJson: BodyReader;
  /** The front end, if one is configured. */
  readonly publicFiles: PublicFiles | undefined;
}
