/** Completions in a schema file and in a test file. */
import { type Completion, completions } from '../../policy/analyse/completions.ts';
import { RULED_ACTIONS } from '../../policy/types.ts';
import { docOf } from '../../policy/words.ts';
import { isObject } from '../../records/write/input.ts';
import { writtenIn } from '../../schema/file/scalar.ts';
import { SourceText } from '../../schema/file/source.ts';
import { filterKeysOf } from '../../schema/model/filter-keys.ts';
import type { SchemaText } from './schema-text.ts';
import { offsetAt, rangeOfRegion, type TextEdit, type TextPosition } from './text-positions.ts';

export interface CompletionItem {
  readonly label: string;
  readonly kind: number;
  readonly detail?: string | undefined;
  readonly documentation?: string | undefined;
  readonly sortText: string;
  readonly filterText?: string;
  readonly textEdit?: TextEdit;
}

/** CompletionItemKind of the protocol. */
const ITEM_KINDS: Readonly<Record<Completion['kind'], number>> = {
  root: 6,
  field: 5,
  relation: 18,
  variable: 6,
  parameter: 6,
  condition: 3,
  function: 3,
  operator: 24,
  word: 14,
  key: 10,
  value: 12,
};
/** The item with the documentation of its word, from the table of operators, which lists leave out. */
export function resolvedItem(item: CompletionItem): CompletionItem {
  const { doc } = docOf(item.label);
  return doc === undefined || item.documentation !== undefined ? item : { ...item, documentation: doc };
}

const ROLE_ITEM = 20;
const NAME_OF_FILE = 6;

export function completeSchema(file: SchemaText, position: TextPosition): readonly CompletionItem[] {
  const offset = offsetAt(file.text, position);
  const found = file.policyAt(offset);
  if (found !== undefined) return inPolicy(file, found);
  const path = file.source.pathAt(offset);
  if (path.at(-2) === 'roles' || path.at(-1) === 'roles' || ['includes', 'assigns'].includes(String(path.at(-2))))
    return completionItems([...(file.catalog?.roles.keys() ?? [])], ROLE_ITEM);
  if (path.at(-1) === 'collection') return completionItems([...(file.catalog?.collections.keys() ?? [])], NAME_OF_FILE);
  return [];
}

function inPolicy(
  file: SchemaText,
  { policy, index }: NonNullable<ReturnType<SchemaText['policyAt']>>,
): readonly CompletionItem[] {
  const { source } = file;
  const { text, path, collection, action, parameters, catalog } = policy;
  const own = catalog.collections.get(collection);
  const queryKeys = action === 'list' && own !== undefined ? filterKeysOf(own).keys() : [];
  const place = { catalog, collection, action, queryKeys, ...(parameters && { parameters }) };
  const style = source.scalarAt(path)?.style;
  return completions(text, index, place).flatMap((each, i) => {
    const region = file.regionOf(policy, each.span);
    if (region === undefined) return [];
    const newText = writtenIn(style, each.text) ?? each.text;
    return [
      {
        label: each.text,
        kind: ITEM_KINDS[each.kind],
        detail: each.type,
        ...(docOf(each.text).doc === undefined && { documentation: each.doc }),
        sortText: String(i).padStart(4, '0'),
        filterText: newText,
        textEdit: { range: rangeOfRegion(region), newText },
      },
    ];
  });
}

const completionItems = (names: readonly string[], kind: number): readonly CompletionItem[] =>
  names.map((label, i) => ({ label, kind, sortText: String(i).padStart(4, '0') }));

/** Names of callers, rows, actions and fields, by the place in the file. */
export function completeTests(
  text: string,
  position: TextPosition,
  { schema }: Pick<SchemaText, 'schema'>,
): readonly CompletionItem[] {
  const source = new SourceText(text, '', { merge: true });
  const raw = source.value();
  const offset = offsetAt(text, position);
  const path = source.pathAt(offset);
  if (!isObject(raw) || schema === undefined) return [];
  const keysOf = (value: unknown): readonly string[] => (isObject(value) ? Object.keys(value) : []);
  const rows = isObject(raw.rows) ? raw.rows : {};
  const callers = ['guest', ...keysOf(raw.as), ...keysOf(rows.users)];
  const [part, , key, ...rest] = path.map(String);
  if (part === 'rows') return completionItems([...schema.collections.keys()], NAME_OF_FILE);
  if (part !== 'tests' || key === undefined)
    return completionItems(
      part === 'tests' ? [...schema.collections.keys(), 'create', 'list', ...callers] : [],
      NAME_OF_FILE,
    );
  if (key === 'as') return completionItems(callers, NAME_OF_FILE);
  if (key === 'create' || key === 'list') return completionItems([...schema.collections.keys()], NAME_OF_FILE);
  if (schema.collections.has(key)) return completionItems(keysOf(rows[key]), NAME_OF_FILE);
  if (callers.includes(key) && rest.length <= 1)
    return completionItems([...RULED_ACTIONS.filter((each) => each !== 'create'), 'none'], ROLE_ITEM);
  if (key === 'expect') return completionItems(['yes', 'no'], ITEM_KINDS.value);
  return [];
}
