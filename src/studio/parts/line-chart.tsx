import type { JSX } from 'preact';

interface LineChartProps {
  /** The newest value, for people who do not see the line. */
  readonly label: string;
  /** The oldest first. */
  readonly values: readonly number[];
}

const [WIDTH, HEIGHT, INSET] = [240, 48, 2];

/** A line of values over time, from zero to the greatest. */
export function LineChart({ label, values }: LineChartProps): JSX.Element {
  const most = Math.max(1e-9, ...values);
  // A single value is a level line.
  const drawn = values.length === 1 ? [...values, ...values] : values;
  const step = (WIDTH - 2 * INSET) / Math.max(1, drawn.length - 1);
  const points = drawn.map((value, i) => {
    const [x, y] = [INSET + i * step, HEIGHT - INSET - (value / most) * (HEIGHT - 2 * INSET)];
    return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
  });
  return (
    <svg class="chart" role="img" aria-label={label} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">
      <polyline points={points.join(' ')} fill="none" stroke="currentColor" stroke-width="1.5" />
    </svg>
  );
}
