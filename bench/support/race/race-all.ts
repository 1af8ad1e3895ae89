/** Races one after the other in one world, and what memory the servers have at the end. */
import { DocumentsWorld, type WorldOptions } from '../documents-world.ts';
import { record } from '../figures.ts';
import { verdict } from '../measure.ts';
import { residentMiB } from '../processor-time.ts';
import { type Course, type Lap, type RaceOptions, race } from './race.ts';

const HUNDRED_THOUSAND: WorldOptions = { rows: 100_000 };

type MakeCourse = Course | ((world: DocumentsWorld) => Course);

export interface RaceAllOptions extends RaceOptions {
  readonly world?: WorldOptions;
  /** MiB after the races, by the name of the server. */
  readonly mostMemory?: Readonly<Record<string, number>>;
}

export async function raceAll(
  courses: readonly MakeCourse[],
  options: RaceAllOptions,
): Promise<readonly (readonly Lap[])[]> {
  const world = await DocumentsWorld.open({ ...(options.world ?? HUNDRED_THOUSAND), before: options.before });
  const laps: (readonly Lap[])[] = [];
  try {
    for (const make of courses) {
      const course = typeof make === 'function' ? make(world) : make;
      laps.push(await race(world, course, options));
    }
    weigh(world, { ...options, bench: laps[0]?.[0]?.course.bench ?? '' });
  } finally {
    await world.close();
  }
  return laps;
}

function weigh(
  { contenders }: DocumentsWorld,
  { bench, mostMemory = {} }: RaceAllOptions & { readonly bench: string },
): void {
  const mib = contenders.map(({ pid }) => residentMiB(pid));
  contenders.forEach(({ name }, i) => {
    const limit = mostMemory[name];
    if (limit === undefined) console.log(`  ${name}: ${mib[i]!.toFixed(0)} MiB resident`);
    else verdict(`${name}: resident after the load`, mib[i]!, { limit, unit: 'MiB' });
  });
  const labels = contenders.map(({ name }) => name);
  const series = [{ name: 'resident', values: mib.map(Math.round) }];
  record({ bench, title: `${bench}: memory after the load`, unit: 'MiB', kind: 'bars', labels, series, notes: [] });
}
