/** A disagreement, with all that is needed to see it again. */
import { inspect } from 'node:util';
import type { CatalogRelation } from '../../../src/policy/types.ts';
import type { Disagreement } from './run.ts';

export function describe({
  backend,
  form,
  text,
  original,
  request,
  view,
  row,
  expected,
  error,
  sql,
  seed,
  world,
  arena,
  leaves,
}: Disagreement): string {
  const { setting } = arena;
  const { rows, next } = view;
  const { collection, action, catalog } = setting;
  const shown = (value: unknown) => inspect(value, { depth: 6, breakLength: 160, maxStringLength: 200 });
  const { fields, relations, table } = catalog.collections.get(collection)!;
  const lines = [
    `DISAGREEMENT: ${backend}, ${leaves} leaves, form "${form}"`,
    `  policy      ${text}`,
    `  was         ${original}`,
    `  collection  ${collection} (table ${table}), action ${action}, asked of the ${view.name} record`,
    `  fields      ${[...fields.values()].map(({ name, type, required }) => `${name}: ${type}${required ? '' : '?'}`).join(', ')}`,
    `  relations   ${[...relations.values()].map(relationText).join(', ')}`,
    `  row ${row}      ${shown(rows[row])}`,
    ...(next ? [`  next        ${shown(next[row])}`] : []),
    `  request     ${shown(request)}`,
    error === undefined
      ? `  expected    ${expected} by the interpreter, ${!expected} by ${backend}`
      : `  error       ${error instanceof Error ? error.stack : shown(error)}`,
    ...(sql ? [`  sql         ${sql.text}`, `  values      ${shown(sql.values)}`] : []),
    `  again       npm run fuzz -- --seed ${seed} --world ${world}`,
  ];
  return lines.join('\n');
}

function relationText(relation: CatalogRelation): string {
  const isOptional = relation.kind === 'belongs_to' && !relation.required;
  return `${relation.name}: ${relation.kind} ${relation.collection}${isOptional ? '?' : ''}`;
}
