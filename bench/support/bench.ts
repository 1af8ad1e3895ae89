/** The shape of a benchmark. */
export interface BenchOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Rounds of a race between servers. */
  readonly rounds: number;
  /** Rows of the largest table of `scale`. */
  readonly rows: number;
  /** The folder of another checkout, built, whose service races too: the version before. */
  readonly before?: string | undefined;
}
export interface Bench {
  readonly name: string;
  readonly question: string;
  run(options: BenchOptions): Promise<unknown>;
}
