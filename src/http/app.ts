/** Everything that a handler may need, made once at the start. */
import type { Auth } from '../auth/auth.ts';
import type { Config } from '../config.ts';
import type { Database } from '../database/contract.ts';
import type { Files } from '../files/files.ts';
import type { Records } from '../records/records.ts';
import type { Schema } from '../schema/model/model.ts';
import type { PublicFiles } from './answer/public-files.ts';
import type { BodyReader } from './body/body.ts';
import type { Logger } from './observe/log.ts';
import type { Metrics } from './observe/metrics.ts';
import type { AddressReader } from './server/address.ts';
import type { InFlight } from './server/in-flight.ts';

export interface App {
  readonly config: Config;
  readonly schema: Schema;
  readonly db: Database;
  readonly records: Records;
  readonly files: Files;
  readonly auth: Auth;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly inFlight: InFlight;
  /** The database holds all that the schema needs. */
  readonly isReady: () => Promise<boolean>;
  /** It takes no new work soon; a balancer should look elsewhere. */
  readonly isStopping: () => boolean;
  /** The client's address; `X-Forwarded-For` counts from configured proxies only. */
  readonly addressOf: AddressReader;
  /** The OpenAPI document of the routes. */
  readonly document: () => object;
  /** Reads a JSON body strictly. */
  readonly readJson: BodyReader;
  /** The front end, where one is configured. */
  readonly publicFiles: PublicFiles | undefined;
}
