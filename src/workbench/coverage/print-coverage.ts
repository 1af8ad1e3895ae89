/** Coverage as a table of text, and as a page of HTML without scripts. */
import { type CoverageDocument, type LeafCoverage, type PolicyCoverage, percentOf } from './coverage.ts';

const LEAF_VALUES = ['true', 'false', 'unknown'] as const;

const missedOf = (leaf: LeafCoverage): readonly string[] => LEAF_VALUES.filter((value) => leaf[value] === 0);
const countText = (count: number | null): string => (count === null ? '-' : String(count));
const onOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

export function printCoverage(coverage: CoverageDocument): string {
  const lines = coverage.policies.flatMap((policy) => [
    `${policy.path}  (alone ${policy.decided_alone} times)`,
    ...policy.leaves.map((leaf) => {
      const counts = LEAF_VALUES.map((value) => `${value} ${countText(leaf[value])}`.padEnd(value.length + 6)).join('');
      const missed = missedOf(leaf);
      const note = missed.length === 0 ? '' : `  ← never ${missed.join(', ')}`;
      return `  ${counts}${leaf.file}:${leaf.line}:${leaf.column}  ${onOneLine(leaf.text)}${note}`;
    }),
  ]);
  return `${lines.join('\n')}\ncoverage: ${percentOf(coverage).toFixed(1)} % of the values of leaves\n`;
}

export function coveragePage(coverage: CoverageDocument): string {
  const rows = coverage.policies.map(policyRows).join('');
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Coverage of policies</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; color-scheme: light dark }
td, th { padding: .2rem .8rem; text-align: left } td { font-family: ui-monospace, monospace }
.missed { background: #e5484d55 } .none { opacity: .4 }
</style>
<h1>${percentOf(coverage).toFixed(1)} % of the values of leaves</h1>
<table><tr><th>leaf<th>place<th>true<th>false<th>unknown</tr>
${rows}</table>
</html>
`;
}

function policyRows({ path, decided_alone, leaves }: PolicyCoverage): string {
  const rows = leaves.map((leaf) => {
    const cells = LEAF_VALUES.map((value) => {
      const count = leaf[value];
      return `<td class="${count === null ? 'none' : count === 0 ? 'missed' : ''}">${countText(count)}`;
    });
    return `<tr><td>${inHtml(onOneLine(leaf.text))}<td>${inHtml(`${leaf.file}:${leaf.line}:${leaf.column}`)}${cells.join('')}</tr>\n`;
  });
  return `<tr><th colspan="5">${inHtml(path)}, alone ${decided_alone} times</tr>\n${rows.join('')}`;
}

const inHtml = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
