/** Migrations of `bylaw dev`: statements that lose no value run at once, the others with the developer's consent. */
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../database/contract.ts';
import { applyMigration } from '../../migrations/apply-migration.ts';
import { type Migration, MigrationRefused } from '../../migrations/migration.ts';
import { losesNothing } from '../../migrations/value-loss.ts';
import type { Schema } from '../../schema/model/model.ts';
import { migrateOptions } from '../../service/system-tables.ts';
import type { Io } from '../support/command.ts';

/** Runs a migration in its context; it may be called twice. */
type Around = (migrate: () => Promise<void>) => Promise<void>;

/** A terminal delivers buffered input within this time. */
const TYPED_AHEAD_MS = 50;

/** The developer declined, or could not be asked without a terminal. */
export class NotMigrated extends Error {
  constructor(migration: Migration, wasAsked: boolean) {
    super(`${reasonsOf(migration)}\nnothing was changed; ${remedyOf(migration, wasAsked)}`);
    this.name = 'NotMigrated';
  }
}

function remedyOf(migration: Migration, wasAsked: boolean): string {
  if (isImpossible(migration)) return 'change the rows or the schema, and save the file again';
  return wasAsked
    ? 'save the file again to be asked again'
    : 'run `bylaw dev` on a terminal to be asked, or `bylaw migrate apply --allow-destructive` and save the file again';
}

/** The rows have to change first, so consent does not help. */
const isImpossible = ({ destructive }: Migration): boolean => destructive.some(({ kind }) => kind === 'impossible');

const reasonsOf = ({ destructive }: Migration): string =>
  `the schema asks for changes that lose data or may fail on it:\n${destructive.map(({ why }) => `- ${why}`).join('\n')}`;

export class DevMigration {
  readonly #db: Database;
  readonly #io: Io;
  #question: AbortController | undefined;

  constructor(db: Database, io: Io) {
    this.#db = db;
    this.#io = io;
  }

  /**
   * Migrates the database to the schema. Requests are served while the developer is asked. → the
   * statements. Throws NotMigrated.
   */
  async run(schema: Schema, around: Around = (migrate) => migrate()): Promise<readonly string[]> {
    let statements: readonly string[] = [];
    const apply = async (allowed: readonly string[]): Promise<void> => {
      ({ statements } = await this.#apply(schema, allowed));
    };
    try {
      await around(() => apply([]));
    } catch (error) {
      if (!(error instanceof MigrationRefused)) throw error;
      if (!(await this.#isConfirmed(error.migration))) throw new NotMigrated(error.migration, this.#mayAsk);
      const allowed = error.migration.destructive.map(({ sql }) => sql);
      await around(() => apply(allowed));
    }
    return statements;
  }

  /** The file was saved again: an answer would be about the previous version. */
  withdraw(): void {
    this.#question?.abort();
  }

  #apply(schema: Schema, allowed: readonly string[]): Promise<Migration> {
    return applyMigration(this.#db, schema, {
      ...migrateOptions(),
      allows: async (tx, { sql: { text }, values }) =>
        allowed.includes(text) || (values !== undefined && (await losesNothing(tx, values))),
    });
  }

  get #mayAsk(): boolean {
    const { stdin, stderr } = this.#io as { stdin: { isTTY?: boolean }; stderr: { isTTY?: boolean } };
    return stdin.isTTY === true && stderr.isTTY === true;
  }

  async #isConfirmed(migration: Migration): Promise<boolean> {
    if (!this.#mayAsk || isImpossible(migration)) return false;
    const { stdin, stderr } = this.#io;
    const terminal = createInterface({ input: stdin, output: stderr as NodeJS.WriteStream });
    this.#question = new AbortController();
    const { signal } = this.#question;
    // The terminal sends no signal for Ctrl-C while it reads.
    terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
    try {
      // Input that was typed before the question does not answer it.
      await sleep(TYPED_AHEAD_MS, undefined, { signal });
      terminal.write(null, { ctrl: true, name: 'u' });
      const answer = await terminal.question(`\n${reasonsOf(migration)}\nDo it nevertheless? [y/N] `, { signal });
      return /^y(?:es)?$/i.test(answer.trim());
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    } finally {
      this.#question = undefined;
      terminal.close();
    }
  }
}
