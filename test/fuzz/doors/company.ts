/** A database in which other statements come together with those that write, so that they share a transaction. */
import type { Database, WriteTarget } from '../../../src/database/contract.ts';
import type { Random } from '../random.ts';
import type { Doors } from './store-modules.ts';

export function inCompany(db: Database, random: Random, { compiler }: Doors): Database {
  const { sql, param, ident } = compiler.sql;
  const write: Database['write'] = async (statement, target) => {
    const [rows] = await Promise.all([db.write(statement, target), ...companions()]);
    return rows;
  };
  function* companions(): Generator<Promise<void>> {
    while (random.chance(0.5)) yield random.chance(0.7) ? answered(`${random.below(1_000_000)}`) : failing();
  }
  /** Before or behind the row of any write. */
  const place = (): WriteTarget => ({ row: random.chance(0.5) ? '' : 'z' });
  async function answered(name: string): Promise<void> {
    const [row] = await db.write(sql`SELECT ${param('text', name)}`, place());
    if (row?.[0] !== name) throw new Error(`a statement beside a write asked for ${name} and was answered ${row?.[0]}`);
  }
  /** Undoes those that it comes with, which are then sent again. Each has a text of its own: one that failed goes alone for some time. */
  const failing = (): Promise<void> =>
    db.write(sql`SELECT 1 / ${param('int8', 0)} AS ${ident(`x${random.below(1_000_000)}`)}`, place()).then(
      () => Promise.reject(new Error('a statement that divides by 0 was answered')),
      () => undefined,
    );
  return new Proxy(db, {
    get(target, name) {
      if (name === 'write') return write;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
