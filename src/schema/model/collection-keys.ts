/** `id` of the file → the key of a collection: the type of its ids, their column and their maker. */
import type { KeyKind } from '../../policy/types.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { CollectionShape, SchemaFile } from '../file/shape.ts';
import { COMPOSITE_KEY_COLUMN } from './composite-key.ts';
import type { Collection, Key, KeyMaker } from './model.ts';

const USUAL_MAKERS: Readonly<Record<KeyKind, KeyMaker>> = { uuid: 'service', int: 'database', string: 'caller' };

const COMPOSITE = { type: 'string', column: COMPOSITE_KEY_COLUMN, made_by: 'database' } as const;
const declaredKey = ({ id = {} }: CollectionShape) => (Array.isArray(id) ? COMPOSITE : id);

interface KeyedCollection extends Pick<Collection, 'name' | 'kind'> {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
}

export function readCollectionKey({ name, kind, shape, path }: KeyedCollection, file: SchemaFile, report: Report): Key {
  const { type = 'uuid', column = 'id', made_by: made } = declaredKey(shape);
  const madeBy = made ?? USUAL_MAKERS[type];
  const own = [...path, 'id'];
  const invalid = (message: string, at: DocumentPath): void => report({ code: 'invalid_key', message, path: at });
  if (shape.id !== undefined && kind !== 'plain')
    invalid(`the service makes the ids of \`${name}\`, which are UUIDs; remove \`id\``, own);
  if (madeBy === 'service' && type !== 'uuid')
    invalid(`the service makes UUIDs alone; expected \`made_by: database\` or \`caller\` of ${type}`, [
      ...own,
      'made_by',
    ]);
  const isDivided = Object.values(file.collections ?? {}).some((each) => each?.distribute !== undefined);
  if (isDivided && (type !== 'uuid' || madeBy !== 'service'))
    invalid('a schema with `distribute` has ids that are UUIDs made by the service; remove `id`', own);
  return { kind: type, column, madeBy };
}
