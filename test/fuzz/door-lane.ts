/** Worlds of writes through the store, one after the other, each in its own schema. */
import pg from 'pg';
import { type DoorRun, runDoors } from './doors.ts';

export class DoorLane {
  readonly #url: string;
  readonly #run: DoorRun;
  #next = 0;

  constructor(url: string, run: DoorRun) {
    this.#url = url;
    this.#run = run;
  }

  /** The disagreement in full. */
  async next(): Promise<string | undefined> {
    const number = this.#next++;
    const schema = `doors_${process.pid}_${number}`;
    const admin = new pg.Client({ connectionString: this.#url });
    await admin.connect();
    try {
      await admin.query(`CREATE SCHEMA ${schema}`);
      const url = `${this.#url}&options=${encodeURIComponent(`-c search_path=${schema}`)}`;
      const db = await this.#run.doors.openDatabase({ url, poolSize: 1, pipelines: 1 });
      try {
        return await runDoors(number, db, this.#run);
      } finally {
        await db.close();
      }
    } finally {
      await admin.query(`DROP SCHEMA ${schema} CASCADE`);
      await admin.end();
    }
  }
}
