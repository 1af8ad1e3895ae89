/** A schema of an owner's tables and views, its own SQL, and a service that serves them. */
import type { Database } from '../../../src/database/contract.ts';
import { raw } from '../../../src/sql.ts';
import type { ServiceOptions } from '../../support/service.ts';

let schemas = 0;

/** The name of a PostgreSQL schema that no other suite uses. */
export const ownSchema = (): string => `owner_${process.pid}_${++schemas}`;

export interface OwnersWorld {
  readonly options: ServiceOptions;
  /** Runs the owner's own statements, beside the service. */
  run(statements: string): Promise<void>;
  rows(statement: string): Promise<readonly (readonly unknown[])[]>;
  /** The database as the service has it. */
  db(): Database;
}

/** @param tables statements that make the tables, separated by `;;` */
export function ownersWorld(tables: string, schema: string): OwnersWorld {
  let opened: Database | undefined;
  const run = async (statements: string): Promise<void> => {
    for (const statement of statements.split(';;')) if (statement.trim() !== '') await opened!.run(raw(statement));
  };
  return {
    options: {
      schema,
      watch: async (db) => {
        opened = db;
        await run(tables);
        return db;
      },
    },
    run,
    db: () => opened!,
    rows: async (statement) => (await opened!.rows(raw(statement))).map((cells) => [...cells]),
  };
}
