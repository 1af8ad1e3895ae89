/** The shape of a benchmark. */
export interface BenchOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Of a race between servers. */
  readonly rounds: number;
  /** Of the largest table of `scale`. */
  readonly rows: number;
}
export interface Bench {
  readonly name: string;
  readonly question: string;
  run(options: BenchOptions): Promise<unknown>;
}
