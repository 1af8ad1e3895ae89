/** The shape of a benchmark. */
export interface BenchOptions {
  readonly seconds: number;
  readonly seed: number;
}
export interface Bench {
  readonly name: string;
  readonly question: string;
  run(options: BenchOptions): Promise<void>;
}
