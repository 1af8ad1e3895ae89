/** Contenders in turn, many short rounds, medians: what disturbs the machine disturbs all of them. */
export interface Contender {
  readonly name: string;
  /** Does its work `times` times. The results are kept, so that the work cannot be optimised away. */
  run(times: number): unknown;
}
export interface Measured {
  readonly name: string;
  /** Nanoseconds a call, of every round. */
  readonly rounds: readonly number[];
  readonly median: number;
}

/** Kernels count a thread’s time in steps of some milliseconds. */
const ROUND_MS = 100;
const sink: { last?: unknown } = {};

export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

export function measure(contenders: readonly Contender[], seconds: number): readonly Measured[] {
  const times = contenders.map(calibrated);
  const rounds: number[][] = contenders.map(() => []);
  const end = performance.now() + seconds * 1000;
  do {
    for (const [i, contender] of contenders.entries()) rounds[i]!.push(timed(contender, times[i]!));
  } while (performance.now() < end);
  return contenders.map(({ name }, i) => ({ name, rounds: rounds[i]!, median: median(rounds[i]!) }));
}

function calibrated(contender: Contender): number {
  let times = 16;
  for (;;) {
    const ms = (timed(contender, times) * times) / 1e6;
    if (ms >= ROUND_MS / 2) return Math.max(1, Math.round((times * ROUND_MS) / ms));
    times *= 2;
  }
}

/** The processor time of this thread, so that what else the machine does is not counted. Nanoseconds a call. */
function timed(contender: Contender, times: number): number {
  const start = process.threadCpuUsage();
  sink.last = contender.run(times);
  const { user, system } = process.threadCpuUsage(start);
  return ((user + system) * 1000) / times;
}

/** The median of the ratios of paired rounds. */
export const ratio = (a: Measured, b: Measured): number => median(a.rounds.map((value, i) => value / b.rounds[i]!));

export function verdict(
  label: string,
  value: number,
  { limit, unit }: { readonly limit: number; readonly unit: string },
): void {
  const held = value <= limit;
  console.log(`${held ? 'held  ' : 'MISSED'} ${label}: ${value.toFixed(2)} ${unit} (at most ${limit})`);
  if (!held) process.exitCode = 1;
}

/** Judges the values of rounds against a limit. */
export type RoundsQuestion = { readonly label: string; readonly values: readonly number[] } & (
  | { readonly atLeast: number }
  | { readonly atMost: number }
);

/** Prints and returns `held`, `unsure` where rounds disagree, or `MISSED`, which sets the exit code, by the median and the better quarter. */
export function judgeRounds(question: RoundsQuestion): string {
  const [isAtLeast, limit] = 'atLeast' in question ? [true, question.atLeast] : [false, question.atMost];
  const values = question.values.toSorted((a, b) => a - b);
  const quarter = (share: number) => values[Math.min(values.length - 1, Math.floor(values.length * share))]!;
  const middle = quarter(0.5);
  const best = quarter(isAtLeast ? 0.75 : 0.25);
  const holds = (value: number) => (isAtLeast ? value >= limit : value <= limit);
  const verdict = holds(middle) ? 'held  ' : holds(best) ? 'unsure' : 'MISSED';
  if (verdict === 'MISSED') process.exitCode = 1;
  const line = `${verdict} ${question.label} ${middle.toFixed(2)} (${isAtLeast ? 'at least' : 'at most'} ${limit})`;
  console.log(`  ${line}`);
  return line;
}
