/** The newest value of a figure, and a line of its values over time. The value at the pointer takes its place. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { theme } from '../../app/preferences.ts';
import { loadedOnce } from '../../parts/loaded-once.ts';
import type { DrawnLine, TimeSeries } from './drawn-line.ts';

const useDrawnLine = loadedOnce(() => import('./drawn-line.ts'));

interface LineChartProps {
  readonly name: string;
  readonly series: TimeSeries;
  readonly shown: (value: number) => string;
}

export function LineChart({ name, series, shown }: LineChartProps): JSX.Element {
  const [times, values] = series;
  const box = useRef<HTMLDivElement>(null);
  const line = useRef<DrawnLine | undefined>(undefined);
  const [point, setPoint] = useState<number>();
  const drawing = useDrawnLine();
  useEffect(() => {
    if (drawing === undefined) return;
    const drawn = new drawing.DrawnLine(box.current!, series, { shown, onPoint: setPoint });
    line.current = drawn;
    return () => drawn.destroy();
  }, [drawing, theme.value]);
  useEffect(() => line.current?.set(series), [series]);
  const newest = shown(values.at(-1)!);
  return (
    <>
      <strong>{point === undefined ? newest : shown(values[point]!)}</strong>
      {point !== undefined && <span class="hint"> {drawing?.clockTime(times[point]!, '2-digit')}</span>}
      <div class="chart" ref={box} role="img" aria-label={`${name}: ${newest}`} />
    </>
  );
}
