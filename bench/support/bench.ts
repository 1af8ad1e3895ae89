/** The shape of a benchmark. */
export interface BenchOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Of a race between servers. */
  readonly rounds: number;
}
export interface Bench {
  readonly name: string;
  readonly question: string;
  run(options: BenchOptions): Promise<unknown>;
}
