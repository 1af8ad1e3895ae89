/**
 * A collection as rows of cells: the columns of a record, and how cells become JSON text or the row
 * that policies see.
 */
import { readTextArray } from '../database/cells.ts';
import type { Cells } from '../database/contract.ts';
import { keyOf, type Row } from '../policy/types.ts';
import { FIELD_KINDS, type FieldKind, keyKindIn, keyKindOf } from '../schema/fields/index.ts';
import type { Collection, HasOne, Schema } from '../schema/model/model.ts';
import { ident, join, raw, type Sql, sql } from '../sql.ts';

interface ShapeMember {
  readonly name: string;
  readonly column: string;
  toJson(cell: string): string;
  fromCell(cell: string): unknown;
  readonly unquotedJson?: ((cell: string) => string) | undefined;
  /** The checks of cells that a column did not hold. */
  readonly kind?: Pick<FieldKind, 'fromJson' | 'fromText' | 'isForeignCell'>;
}

/** A text after a value that is complete, and after one that lacks its closing quotation mark. */
type FollowingText = readonly [string, string];

/** The texts around the value of a member; the first begins with the brace. */
interface Printed {
  /** `"title":`, with the quotation mark of a value that needs nothing else. */
  readonly open: FollowingText;
  readonly text: (cell: string) => string;
  /** 1: the text after the value begins with its closing quotation mark. */
  readonly next: 0 | 1;
  /** `"title":null` */
  readonly none: FollowingText;
}

/** Names of members that are shown. The id always is. */
export type Members = ReadonlySet<string>;

export class RecordShape {
  readonly collection: Collection;
  readonly hasOnes: readonly HasOne[];
  /** Cells of the stored columns alone. */
  readonly width: number;
  readonly #members: readonly ShapeMember[];
  readonly #printed: readonly Printed[];
  readonly #columns = new Map<string, Sql>();
  readonly #names: readonly string[];

  constructor(collection: Collection, schema: Pick<Schema, 'collections'>) {
    this.collection = collection;
    const members = [...shapeMembersOf(collection, schema)];
    this.#members = members;
    this.width = members.length;
    this.hasOnes = [...collection.relations.values()].filter((relation) => relation.kind === 'has_one');
    const names = [...members.map(({ name }) => name), ...this.hasOnes.map(({ name }) => name)];
    this.#names = names;
    this.#printed = [
      ...members,
      ...this.hasOnes.map((relation) => ({ ...keyKindIn(schema, relation.collection), name: relation.name })),
    ].map(printedMember);
  }

  /** The stored columns, of the table named `alias` in the statement. */
  columns(alias: string): Sql {
    let known = this.#columns.get(alias);
    if (known === undefined) {
      const table = ident(alias);
      known = join(
        this.#members.map(({ column }) => sql`${table}.${ident(column)}`),
        ', ',
      );
      this.#columns.set(alias, known);
    }
    return known;
  }

  /** The stored columns; `shown` replaces each but the id. */
  columnsOf(alias: string, shown: (name: string, column: Sql) => Sql): Sql {
    const cells = this.#members.map(({ name, column }) => {
      const stored = ident(alias, column);
      return name === 'id' ? stored : shown(name, stored);
    });
    return join(cells, ', ');
  }

  /** The cells of the columns, then of each has_one, beginning at `from`; without the closing brace. */
  open(cells: Cells, from = 0, members?: Members, count = this.#printed.length): string {
    let json = '';
    let at: Printed['next'] = 0;
    for (let i = 0; i < count; i++) {
      if (i > 0 && members?.has(this.#names[i]!) === false) continue;
      const cell = cells[from + i] ?? null;
      const { open, text, next, none } = this.#printed[i]!;
      json += cell === null ? none[at] : open[at];
      if (cell !== null) json += text(cell);
      at = cell === null ? 0 : next;
    }
    return at === 0 ? json : `${json}"`;
  }

  /** The stored columns alone. */
  openStored(cells: Cells): string {
    return this.open(cells, 0, undefined, this.width);
  }

  /** The record as policies see it. */
  row(cells: Cells, from = 0): Row {
    const row: Record<string, unknown> = {};
    for (let i = 0; i < this.width; i++) {
      const cell = cells[from + i] ?? null;
      const member = this.#members[i]!;
      row[member.name] = cell === null ? null : member.fromCell(cell);
    }
    return row;
  }

  /** True if each cell is a value of its member. History has cells from before a change of type. */
  fits(cells: Cells): boolean {
    return this.#members.every((member, i) => cells[i] == null || isValueOf(member, cells[i]));
  }

  /** The place of a member among the cells. */
  place(name: string): number {
    return this.#names.indexOf(name);
  }

  /** The column of a stored member. */
  columnOf(name: string): string | undefined {
    return this.#members.find((member) => member.name === name)?.column;
  }

  /** The member that a column stores. */
  nameOf(column: string): string | undefined {
    return this.#members.find((member) => member.column === column)?.name;
  }

  get storedColumns(): ReadonlySet<string> {
    return new Set(this.#members.map(({ column }) => column));
  }

  /** The members that a record shows: its stored members and its has_ones. */
  get names(): readonly string[] {
    return this.#names;
  }
}

function isValueOf({ kind, toJson, fromCell }: ShapeMember, cell: string): boolean {
  if (kind === undefined) return true;
  try {
    const read = kind.fromJson((kind.fromText ?? JSON.parse)(toJson(cell)), {});
    return kind.isForeignCell?.(cell) !== true && read.error === undefined && read.value === fromCell(cell);
  } catch {
    return false;
  }
}

function printedMember({ name, toJson, unquotedJson }: Omit<ShapeMember, 'column'>, i: number): Printed {
  const key = `${i === 0 ? '{' : ','}${JSON.stringify(name)}:`;
  // V8 joins the parts of an answer once, so each part less saves time.
  const following = (text: string): FollowingText => [text, `"${text}`];
  const none = following(`${key}null`);
  return unquotedJson === undefined
    ? { open: following(key), text: toJson, next: 0, none }
    : { open: following(`${key}"`), text: unquotedJson, next: 1, none };
}

function* shapeMembersOf(collection: Collection, schema: Pick<Schema, 'collections'>): Iterable<ShapeMember> {
  yield member(keyKindOf(collection), 'id', keyOf(collection).column);
  if (collection.kind === 'users') yield ROLES;
  for (const { name, column, type } of collection.fields.values()) yield member(FIELD_KINDS[type], name, column);
  for (const relation of collection.relations.values()) {
    if (relation.kind !== 'belongs_to') continue;
    yield member(keyKindIn(schema, relation.collection), relation.name, relation.column);
  }
}

const member = (kind: FieldKind, name: string, column: string): ShapeMember => ({ ...kind, kind, name, column });

const ROLES: ShapeMember = {
  name: 'roles',
  column: 'roles',
  toJson: (cell) => JSON.stringify(readTextArray(cell)),
  fromCell: readTextArray,
};

export const ALWAYS = raw('TRUE');
