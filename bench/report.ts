/**
 * `npm run bench:report`: draws what `npm run bench` measured here as one page that needs nothing else, bench/report.html. Chart.js is
 * inlined; the figures are data in the page.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readFigures } from './support/figures.ts';

const library = readFileSync(new URL('chart.umd.min.js', import.meta.resolve('chart.js')), 'utf8');
const out = fileURLToPath(new URL('./report.html', import.meta.url));
const figures = readFigures();
if (figures.length === 0) {
  console.error('nothing was measured here yet; run `npm run bench -- list read create patch` first');
  process.exit(1);
}

/** A script ends at the first `</` at any place. */
const inScript = (text: string): string => text.replaceAll('</', '<\\/').replace(/^\/\/# sourceMappingURL=.*$/m, '');

const DRAW = `
const figures = JSON.parse(document.getElementById('figures').textContent);
const colours = ['#2563eb', '#f59e0b', '#10b981', '#ef4444', '#8b5cf6'];
const main = document.querySelector('main');
let last;
for (const { bench, title, unit, kind, labels, series, notes, run } of figures) {
  if (bench !== last) {
    const heading = document.createElement('h2');
    heading.textContent = 'npm run bench -- ' + bench;
    main.append(heading);
    last = bench;
  }
  const section = document.createElement('section');
  const canvas = document.createElement('canvas');
  canvas.setAttribute('role', 'img');
  const values = series.map(({ name, values }) => name + ': ' + values.map((value, i) => labels[i] + ' ' + value).join(', '));
  canvas.setAttribute('aria-label', title + ' in ' + unit + '. ' + values.join('; '));
  const caption = document.createElement('p');
  caption.textContent = [...notes, run].join(' · ');
  section.append(canvas, caption);
  main.append(section);
  const isLine = kind === 'lines';
  const datasets = series.map(({ name, values }, i) => ({
    label: name,
    data: isLine ? values.map((y, j) => ({ x: Number(labels[j]), y })) : values,
    borderColor: colours[i % colours.length],
    backgroundColor: colours[i % colours.length],
  }));
  new Chart(canvas, {
    type: isLine ? 'line' : 'bar',
    data: isLine ? { datasets } : { labels, datasets },
    options: {
      animation: false,
      aspectRatio: 1.6,
      plugins: { title: { display: true, text: title }, legend: { display: series.length > 1 } },
      scales: {
        x: isLine ? { type: 'logarithmic', title: { display: true, text: 'rows' } } : {},
        y: { beginAtZero: true, title: { display: true, text: unit } },
      },
    },
  });
}`;

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>bylaw: what was measured</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1f2937; background: #fff }
  main { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.5rem }
  h2 { grid-column: 1 / -1; margin: 1rem 0 0; font: 600 1rem ui-monospace, monospace }
  section { min-width: 0 }
  p { margin: .25rem 0; font-size: .8rem; color: #6b7280 }
</style>
<h1>What was measured</h1>
<p>The medians of paired rounds on one machine; ratios within a figure hold, absolute values do not. bench/README.md says what each means.</p>
<main></main>
<script type="application/json" id="figures">${inScript(JSON.stringify(figures))}</script>
<script>${inScript(library)}</script>
<script>${DRAW}</script>
</html>
`;
writeFileSync(out, page);
console.log(`wrote ${out}: ${figures.length} figures`);
