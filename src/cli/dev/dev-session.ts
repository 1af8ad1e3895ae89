/**
 * Follows the schema file for `bylaw dev`: serves the new schema, or keeps the last good one and
 * reports the reason.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../http/observe/log.ts';
import type { Workshop } from '../../http/workshop.ts';
import { brokenRules, brokenRuleText } from '../../migrations/broken-rules.ts';
import { haveSameTables } from '../../migrations/schema-record.ts';
import { versionOfText } from '../../schema/file/text-version.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Service } from '../../service/start-service.ts';
import type { Io } from '../support/command.ts';
import { refutedStatements } from '../support/refuted-statements.ts';
import { readSchemaFile } from '../support/schema-file.ts';
import { loadSeed, type Seeded } from '../transfer/seed.ts';
import { type DevMigration, NotMigrated } from './dev-migration.ts';

/**
 * An incomplete file may be a valid schema without its last collections: tables change only for a
 * text that stays.
 */
const SETTLE_MS = 200;

export interface SessionParts {
  readonly file: string;
  /** The schema with which the service started. */
  readonly schema: Schema;
  /** The text of the file before the schema was read. */
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
  #schema: Schema;
  /** The text of the served schema; undefined after an error, so that saving the file again is a new attempt. */
  #text: string | undefined;
  /** Why the last save was not served. */
  #reason = '';
  /** Reloads run one after the other. */
  #last: Promise<void> = Promise.resolve();

  /** The time of the save that is being tried, or was rejected. */
  #rejectedAt: number | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#path = resolve(parts.io.cwd, parts.file);
    this.#schema = parts.schema;
    this.#text = parts.text;
  }

  /** `since`: when the change was noticed, by `performance.now()`. */
  reload(since: number): void {
    // Another event of the same save: its question stays.
    if (this.#rejectedAt !== undefined && modifiedAt(this.#path) === this.#rejectedAt) return;
    this.#parts.migration.withdraw();
    this.#last = this.#last.then(() => this.#reload(since)).catch((error: unknown) => this.#keep(String(error)));
  }

  /** The schema that is served. */
  get schema(): Schema {
    return this.#schema;
  }

  /** The folder of the schema file. */
  get folder(): string {
    return dirname(this.#path);
  }

  /** Writes the file, and waits until its text is served or rejected. `version`: of the text that it replaces. */
  async save(text: string, version: string): ReturnType<Workshop['saveSchema']> {
    const before = textOfFile(this.#path);
    if (before === undefined || versionOfText(before) !== version) return 'changed';
    writeFileSync(this.#path, text);
    this.reload(performance.now());
    await this.#last;
    return this.#text === text ? 'saved' : { reason: this.#reason };
  }

  /** Waits for a pending reload. */
  async close(): Promise<void> {
    this.#parts.migration.withdraw();
    await this.#last;
  }

  async #reload(since: number): Promise<void> {
    const text = textOfFile(this.#path);
    if (text !== undefined && text === this.#text) return;
    // A save may cause several events; saving an unchanged file again is a new attempt.
    const savedAt = modifiedAt(this.#path);
    if (savedAt !== undefined && savedAt === this.#rejectedAt) return;
    this.#rejectedAt = savedAt;
    const { schema, report, issues } = readSchemaFile(this.#parts.file, this.#parts.io);
    if (schema === undefined) {
      // Some editors remove the file before they create the new one, which is another event.
      if (text === undefined) await sleep(SETTLE_MS);
      if (text === undefined && textOfFile(this.#path) !== undefined) return this.#retry(since);
      return this.#keep(text === undefined ? issues.map(({ message }) => message).join('\n') : report);
    }
    const isSameData = haveSameTables(schema, this.#schema);
    if (!isSameData) {
      await sleep(SETTLE_MS);
      if (textOfFile(this.#path) !== text) return this.#retry(performance.now());
    }
    if (hasCollections(this.#schema) && !hasCollections(schema)) return this.#keep(LAST_COLLECTION);
    let statements: readonly string[] = [];
    try {
      if (isSameData) await this.#parts.service.replaceSchema(schema);
      else statements = await this.#migrate(schema);
    } catch (error) {
      return this.#keep(error instanceof NotMigrated ? error.message : `the database refused it: ${String(error)}`);
    }
    const former = this.#schema;
    const added = [...schema.collections.keys()].filter((name) => !this.#schema.collections.has(name));
    this.#schema = schema;
    this.#text = text;
    this.#rejectedAt = undefined;
    const took = Math.round((performance.now() - since) * 10) / 10;
    const details = [...statements.map((statement) => `${statement};`), report].join('\n').trim();
    this.#parts.log.info({ took_ms: took, ...(details === '' ? {} : { text: details }) }, 'serving the new schema');
    await reportRefuted(schema, this.#parts.log);
    for (const rule of await brokenRules(this.#parts.service.app.db, schema, former))
      this.#parts.log.warn(brokenRuleText(rule));
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
    this.#reason = reason;
    this.#parts.log.error({ text: reason }, `${this.#parts.file} cannot be served; the last good schema stays`);
  }
}

const hasCollections = ({ collections }: Schema): boolean =>
  [...collections.values()].some(({ kind }) => kind === 'plain');

/** An editor that empties a file before it writes it may take longer than any wait. */
const LAST_COLLECTION =
  'the file has no collections any more; nothing was changed; to drop the last one: `bylaw migrate apply --allow-destructive`';

const modifiedAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.mtimeMs;

/** Undefined if the file does not exist. */
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

/** Warns of the statements that the served schema refutes. */
export async function reportRefuted(schema: Schema, log: Logger): Promise<void> {
  for (const sentence of await refutedStatements(schema)) log.warn(sentence);
}
