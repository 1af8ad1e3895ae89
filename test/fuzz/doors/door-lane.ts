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

  /** The disagreement in full. A transaction that a busy machine has ended ends its world, too. */
  async next(): Promise<string | undefined> {
    const number = this.#next++;
    const schema = `doors_${process.pid}_${number}`;
    const { openDatabase } = this.#run.doors;
    const world = inOwnSchema({ url: this.#url, schema, openDatabase }, (db) => runDoors(number, db, this.#run));
    return world.catch((error: unknown) => {
      if ((error as { readonly kind?: string }).kind !== 'unavailable') throw error;
      return undefined;
    });
  }
}
