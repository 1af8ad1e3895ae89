/** Worlds of writes through the store, one after the other, each in its own schema. */
import { type DoorRun, runDoors } from './doors.ts';
import { inOwnSchema } from './own-schema.ts';

export class DoorLane {
  readonly #url: string;
  readonly #run: DoorRun;
  #next: number;

  /** @param first the number of the first world */
  constructor(url: string, run: DoorRun, first = 0) {
    this.#url = url;
    this.#run = run;
    this.#next = first;
  }

  /** The disagreement in full. */
  async next(): Promise<string | undefined> {
    const number = this.#next++;
    const schema = `doors_${process.pid}_${number}`;
    const { openDatabase } = this.#run.doors;
    return inOwnSchema({ url: this.#url, schema, openDatabase }, (db) => runDoors(number, db, this.#run));
  }
}
