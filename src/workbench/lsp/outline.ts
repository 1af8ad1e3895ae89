/** The symbols of a schema file: collections with their fields, relations and rules, conditions, roles, statements. */
import { isObject } from '../../records/write/input.ts';
import type { DocumentPath } from '../../schema/file/issue.ts';
import type { SchemaText } from './schema-text.ts';
import { rangeOfRegion, type TextRange } from './text-positions.ts';

export interface DocumentSymbol {
  readonly name: string;
  readonly kind: number;
  readonly range: TextRange;
  readonly selectionRange: TextRange;
  readonly children: readonly DocumentSymbol[];
}

/** SymbolKind of the protocol. */
const SYMBOLS = { collection: 5, field: 8, relation: 18, rule: 6, condition: 12, role: 10 } as const;

export function outlineOf(file: SchemaText): readonly DocumentSymbol[] {
  const { raw } = file;
  if (!isObject(raw)) return [];
  const collections = namesBelow(raw.collections).map((name) => collectionSymbol(file, name));
  const conditions = namesBelow(raw.conditions).map((name) => symbol(file, ['conditions', name], SYMBOLS.condition));
  const roles = Array.isArray(raw.roles)
    ? []
    : namesBelow(raw.roles).map((name) => symbol(file, ['roles', name], SYMBOLS.role));
  return [...roles, ...conditions, ...collections].toSorted((a, b) => a.range.start.line - b.range.start.line);
}

const namesBelow = (value: unknown): readonly string[] => (isObject(value) ? Object.keys(value) : []);

function collectionSymbol(file: SchemaText, name: string): DocumentSymbol {
  const path = ['collections', name];
  const shape = file.valueAt(path);
  const parts = [
    ['fields', SYMBOLS.field],
    ['relations', SYMBOLS.relation],
    ['access', SYMBOLS.rule],
    ['checks', SYMBOLS.rule],
  ] as const;
  const children = parts.flatMap(([part, kind]) =>
    namesBelow(isObject(shape) ? shape[part] : undefined).map((key) => symbol(file, [...path, part, key], kind)),
  );
  return symbol(file, path, SYMBOLS.collection, children);
}

/** INVARIANT: the range of a symbol contains its name and its children. */
function symbol(
  { source }: SchemaText,
  path: DocumentPath,
  kind: number,
  children: readonly DocumentSymbol[] = [],
): DocumentSymbol {
  const selectionRange = rangeOfRegion(source.placeOf(path, 'key'));
  const ends = [rangeOfRegion(source.extentOf(path)), selectionRange, ...children.map(({ range }) => range)].map(
    ({ end }) => end,
  );
  const end = ends.reduce((a, b) => (a.line > b.line || (a.line === b.line && a.character > b.character) ? a : b));
  return { name: String(path.at(-1)), kind, range: { start: selectionRange.start, end }, selectionRange, children };
}

interface FoldingRange {
  readonly startLine: number;
  readonly endLine: number;
}

/** Each symbol of several lines. */
export const foldsOf = (file: SchemaText): readonly FoldingRange[] => outlineOf(file).flatMap(symbolFolds);

const symbolFolds = ({ range: { start, end }, children }: DocumentSymbol): readonly FoldingRange[] => {
  const own = end.line > start.line ? [{ startLine: start.line, endLine: end.line }] : [];
  return [...own, ...children.flatMap(symbolFolds)];
};
