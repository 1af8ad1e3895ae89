/** `title` of a collection: the field that names its records to people. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { isText } from '../../policy/scalar-types.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import type { Collection } from './model.ts';

interface TitledCollection extends Pick<Collection, 'kind' | 'fields'> {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
}

export function titleFieldOf({ kind, fields, shape, path }: TitledCollection, report: Report): string | null {
  const strings = [...fields.values()].filter(({ type }) => isText(type)).map(({ name }) => name);
  const { title } = shape;
  if (title !== undefined && !strings.includes(title)) {
    const near = nearest(title, strings);
    const message = `\`${title}\` is not a string field of the collection${hintOf(near)}`;
    report({ code: 'unknown_field', message, path: [...path, 'title'], replacement: near });
  }
  return title ?? (kind === 'users' ? 'email' : (strings[0] ?? null));
}
