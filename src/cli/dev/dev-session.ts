/**
 * What `bylaw dev` does when the schema file changes: it serves the new schema, or keeps the last
 * good one and says why.
 */
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../http/observe/log.ts';
import { haveSameTables } from '../../migrations/schema-record.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Service } from '../../service/start-service.ts';
import type { Io } from '../support/command.ts';
import { readSchemaFile } from '../support/schema-file.ts';
import { loadSeed, type Seeded } from '../transfer/seed.ts';
import { type DevMigration, NotMigrated } from './dev-migration.ts';

/**
 * A file that is half written may be a valid schema without its last collections: tables change
 * only for one that stays.
 */
const SETTLE_MS = 150;

export interface SessionParts {
  readonly file: string;
  /** What the service started with. */
  readonly schema: Schema;
  /** Of the file, when that was read. */
  readonly text: string | undefined;
  readonly service: Service;
  readonly migration: DevMigration;
  readonly hasSeed: boolean;
  readonly log: Logger;
  readonly io: Io;
}

export class DevSession {
  readonly #parts: SessionParts;
  readonly #path: string;
  /** Served now. */
  #schema: Schema;
  /** Of the schema that is served; undefined after an error, so that saving the file again is another try. */
  #text: string | undefined;
  /** Reloads run one after the other. */
  #last: Promise<void> = Promise.resolve();

  /** When the file was saved that is being tried, or was rejected. */
  #rejectedAt: number | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#path = resolve(parts.io.cwd, parts.file);
    this.#schema = parts.schema;
    this.#text = parts.text;
  }

  /** `since`: when the change was noticed, by `performance.now()`. */
  reload(since: number): void {
    // The same save again: a question about it stays.
    if (this.#rejectedAt !== undefined && modifiedAt(this.#path) === this.#rejectedAt) return;
    this.#parts.migration.withdraw();
    this.#last = this.#last.then(() => this.#reload(since)).catch((error: unknown) => this.#keep(String(error)));
  }

  /** Waits for the reload that is under way. */
  async close(): Promise<void> {
    this.#parts.migration.withdraw();
    await this.#last;
  }

  async #reload(since: number): Promise<void> {
    const text = textOfFile(this.#path);
    if (text !== undefined && text === this.#text) return;
    // One save may be several events; a file that is saved again unchanged asks for another try.
    const savedAt = modifiedAt(this.#path);
    if (savedAt !== undefined && savedAt === this.#rejectedAt) return;
    this.#rejectedAt = savedAt;
    const { schema, report, issues } = readSchemaFile(this.#parts.file, this.#parts.io);
    if (schema === undefined) {
      // Some editors take the file away before they put the new one there; that is another event.
      if (text === undefined) await sleep(SETTLE_MS);
      if (text === undefined && textOfFile(this.#path) !== undefined) return this.#retry(since);
      return this.#keep(text === undefined ? issues.map(({ message }) => message).join('\n') : report);
    }
    const isSameData = haveSameTables(schema, this.#schema);
    if (!isSameData) {
      await sleep(SETTLE_MS);
      if (textOfFile(this.#path) !== text) return this.#retry(performance.now());
    }
    let statements: readonly string[] = [];
    try {
      if (isSameData) await this.#parts.service.replaceSchema(schema);
      else statements = await this.#migrate(schema);
    } catch (error) {
      return this.#keep(error instanceof NotMigrated ? error.message : `the database refused it: ${String(error)}`);
    }
    const added = [...schema.collections.keys()].filter((name) => !this.#schema.collections.has(name));
    this.#schema = schema;
    this.#text = text;
    this.#rejectedAt = undefined;
    const took = Math.round((performance.now() - since) * 10) / 10;
    const details = [...statements.map((statement) => `${statement};`), report].join('\n').trim();
    this.#parts.log.info({ took_ms: took, ...(details === '' ? {} : { text: details }) }, 'serving the new schema');
    if (this.#parts.hasSeed && added.length > 0) await this.#seed(schema, new Set(added));
  }

  #retry(since: number): Promise<void> {
    this.#rejectedAt = undefined;
    return this.#reload(since);
  }

  #migrate(schema: Schema): Promise<readonly string[]> {
    const { migration, service } = this.#parts;
    return migration.run(schema, (migrate) => service.replaceSchema(schema, migrate));
  }

  async #seed(schema: Schema, only: ReadonlySet<string>): Promise<void> {
    const { service, io, log } = this.#parts;
    reportSeed(await loadSeed(service.app.db, { schema, cwd: io.cwd, only }), log);
  }

  #keep(reason: string): void {
    this.#text = undefined;
    this.#parts.log.error({ text: reason }, `${this.#parts.file} cannot be served; the last good schema stays`);
  }
}

const modifiedAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.mtimeMs;

/** Undefined while there is no such file. */
export function textOfFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

export function reportSeed({ done, issues }: Seeded, log: Logger): void {
  for (const line of done) log.info(`seed: ${line}`);
  if (issues.length > 0)
    log.error({ text: issues.join('\n') }, 'the seed has errors; nothing of these files was loaded');
}
