/** `expand=a,b`: the names of relations whose records come along. */

import { nearest } from '../../../grammar/suggest.ts';
import type { QueryPair } from '../../http/query.ts';
import { echo, type Fault } from '../../problem.ts';
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
  const detail = firstFault(names, collection);
  if (detail !== undefined) faults.push({ parameter: 'expand', code: 'unknown_expand', detail });
  return names;
}

/** Stops at the first fault, so it looks at no more names than the collection has relations, and one. */
function firstFault(names: readonly string[], collection: Collection): string | undefined {
  const seen = new Set<string>();
  for (const name of names) {
    if (name === '') return '`expand` holds an empty name';
    if (seen.has(name)) return `\`${name}\` is to be expanded more than once`;
    if (!collection.relations.has(name)) return unknownRelation(name, collection);
    seen.add(name);
  }
  return undefined;
}

function unknownRelation(name: string, collection: Collection): string {
  const near = nearest(name, collection.relations.keys());
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  return `\`${collection.name}\` has no relation \`${echo(name)}\`${hint}`;
}
