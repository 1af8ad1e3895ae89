/** A line over time on a canvas, in the colours of the page's style. */
import uPlot from 'uplot';

/** The x values: seconds since 1970, the oldest first. */
export type TimeSeries = readonly [times: readonly number[], values: readonly number[]];

interface LineOptions {
  readonly shown: (value: number) => string;
  /** Given the index of the point under the pointer. */
  readonly onPoint: (index: number | undefined) => void;
}

const HEIGHT = 120;
/** The labels of the axes: pixels beside and below the line, and between labels. */
const [LEFT, BELOW, BETWEEN_TIMES, BETWEEN_VALUES] = [64, 24, 72, 28];
const DARK = matchMedia('(prefers-color-scheme: dark)');

export class DrawnLine {
  readonly #plot: uPlot;
  readonly #observer: ResizeObserver;
  readonly #redraw = (): void => this.#plot.redraw();

  constructor(box: HTMLElement, series: TimeSeries, options: LineOptions) {
    this.#plot = new uPlot(plotOptions(box, options), plotDataOf(series), box);
    this.#observer = new ResizeObserver(() => this.#plot.setSize({ width: box.clientWidth, height: HEIGHT }));
    this.#observer.observe(box);
    DARK.addEventListener('change', this.#redraw);
  }

  set(series: TimeSeries): void {
    this.#plot.setData(plotDataOf(series));
  }

  destroy(): void {
    DARK.removeEventListener('change', this.#redraw);
    this.#observer.disconnect();
    this.#plot.destroy();
  }
}

function plotOptions(box: HTMLElement, { shown, onPoint }: LineOptions): uPlot.Options {
  // The canvas knows no variable of the style.
  const colour = (name: string) => (): string => getComputedStyle(box).getPropertyValue(name);
  const axis: uPlot.Axis = { stroke: colour('--faint'), font: '12px system-ui, sans-serif', ticks: { show: false } };
  const times: uPlot.Axis = { ...axis, size: BELOW, space: BETWEEN_TIMES, grid: { show: false }, values: timesOf };
  const values: uPlot.Axis = {
    ...axis,
    size: LEFT,
    space: BETWEEN_VALUES,
    grid: { stroke: colour('--line'), width: 1 },
    values: (_plot, marks) => marks.map(shown),
  };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false } },
    scales: { y: { range: (_plot, _least, most) => [0, most || 1] } },
    axes: [times, values],
    series: [{}, { stroke: colour('--accent'), width: 1.5, points: { show: ({ data }) => data[0].length === 1 } }],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)] },
  };
}

const plotDataOf = ([times, values]: TimeSeries): uPlot.AlignedData => [[...times], [...values]];

function timesOf(plot: uPlot, times: readonly number[], _axis: number, _space: number, seconds: number): string[] {
  // A single value has no span of time.
  if (plot.data[0].length === 1) return times.map(() => '');
  const second = seconds < 60 ? '2-digit' : undefined;
  return times.map((time) => clockTime(time, second));
}

export const clockTime = (time: number, second?: '2-digit'): string =>
  new Date(time * 1_000).toLocaleTimeString(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second,
    hourCycle: 'h23',
  });
