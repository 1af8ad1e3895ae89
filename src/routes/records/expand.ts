/** `expand=a,b`: the names of relations whose records come along. */

import { nearest } from '../../../grammar/suggest.ts';
import type { QueryPair } from '../../http/query.ts';
import type { Fault } from '../../problem.ts';
import type { Collection } from '../../schema/model.ts';

export interface ExpandPlace {
  readonly collection: Collection;
  readonly faults: Fault[];
}

export function readExpand(pairs: readonly QueryPair[], { collection, faults }: ExpandPlace): readonly string[] {
  const given = pairs.filter(({ key }) => key === 'expand');
  if (given.length === 0) return [];
  if (given.length > 1) {
    faults.push({
      parameter: 'expand',
      code: 'invalid_parameter',
      detail: '`expand` is given more than once; join the names by commas',
    });
    return [];
  }
  const names = (given[0]!.value ?? '').split(',');
  const detail = names
    .map((name, i) => refusalOf(name, { before: names.slice(0, i), collection }))
    .find((said) => said !== undefined);
  if (detail !== undefined) faults.push({ parameter: 'expand', code: 'unknown_expand', detail });
  return names;
}

function refusalOf(
  name: string,
  { before, collection }: { readonly before: readonly string[]; readonly collection: Collection },
): string | undefined {
  if (name === '') return '`expand` holds an empty name';
  if (before.includes(name)) return `\`${name}\` is to be expanded more than once`;
  if (collection.relations.has(name)) return undefined;
  const near = nearest(name, collection.relations.keys());
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  return `\`${collection.name}\` has no relation \`${name}\`${hint}`;
}
