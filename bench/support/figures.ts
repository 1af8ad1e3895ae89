/**
 * Keeps the figures of benches for the report: `bench/figures.json`, the last value of each figure.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FILE = fileURLToPath(new URL('../figures.json', import.meta.url));

interface Series {
  readonly name: string;
  readonly values: readonly number[];
}
export interface Figure {
  readonly bench: string;
  readonly title: string;
  readonly unit: string;
  /** `bars`: a group a label. `lines`: the labels are numbers, drawn on a logarithmic axis. */
  readonly kind: 'bars' | 'lines';
  readonly labels: readonly string[];
  readonly series: readonly Series[];
  /** The verdicts, as printed. */
  readonly notes: readonly string[];
}
interface Recorded extends Figure {
  /** Day of the run, and the machine. */
  readonly run: string;
}

export function readFigures(): readonly Recorded[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Recorded[]) : [];
}

/** Replaces the figure of the same bench and title. */
export function record(figure: Figure): void {
  const others = readFigures().filter(({ bench, title }) => bench !== figure.bench || title !== figure.title);
  const run = `${new Date().toISOString().slice(0, 10)}, Node ${process.version}`;
  const all = [...others, { ...figure, run }].sort((a, b) =>
    `${a.bench} ${a.title}` < `${b.bench} ${b.title}` ? -1 : 1,
  );
  writeFileSync(FILE, `${JSON.stringify(all, null, 1)}\n`);
}
