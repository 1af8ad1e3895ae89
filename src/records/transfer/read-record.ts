/** A record of a file, checked against its collection: every error at once, each at its line. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { InexactNumeral, type Scalar } from '../../policy/values.ts';
import { newRecordId } from '../../record-id.ts';
import { keyKindIn } from '../../schema/fields/index.ts';
import { type Collection, type ManyToMany, madeBy, type Schema } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { valueOfDefault } from '../write/input.ts';
import type { DateFormat } from './date-format.ts';
import { manyToManyOf, type StoredMember, storedMembersOf } from './members.ts';

/** A record as its file has it. `line` is the physical line that it begins on, from 1. */
export interface SourceRecord {
  readonly line: number;
  /** Not given where the line cannot be read: `error` says why. */
  readonly members?: ReadonlyMap<string, unknown>;
  readonly error?: string;
  /** Values are the text of CSV cells; null is null. */
  readonly isText: boolean;
  /** `members` are the names of the header of a file without records, with null for each. */
  readonly isHeader?: boolean;
}
export interface ImportError {
  /** Not given where the database alone knows. */
  readonly line?: number;
  readonly message: string;
}

/** `id` is undefined where the database makes it. */
export type RecordRead = Omit<StagedRecord, 'id'> & { readonly id: string | undefined };
export interface StagedRecord {
  readonly line: number;
  readonly id: string;
  /** Values by member; a member that the file leaves out has its default, or null. */
  readonly values: ReadonlyMap<string, Scalar | null>;
  /** Names that the file gives. */
  readonly given: ReadonlySet<string>;
  /** Target ids by relation, for those that the file gives. */
  readonly links: ReadonlyMap<string, readonly string[]>;
  readonly roles: readonly string[] | undefined;
  /** Values of a unique field of the target, by relation, in place of its ids; for those that the file gives. */
  readonly keys: ReadonlyMap<string, readonly Scalar[]>;
}

export interface RecordReading {
  readonly schema: Pick<Schema, 'collections' | 'roles'>;
  readonly collection: Collection;
  /** For defaults, canonical. */
  readonly now: string;
  /** Relations whose records the file names by a unique field. */
  readonly keyed: ReadonlyMap<string, TargetKey>;
  readonly dateFormat?: DateFormat | undefined;
}
/** A unique field of the target of a relation. */
export interface TargetKey {
  readonly target: Collection;
  readonly member: StoredMember;
}

export class RecordReader {
  readonly members: readonly StoredMember[];
  readonly #schema: RecordReading['schema'];
  readonly #collection: Collection;
  readonly #roles: ReadonlySet<string>;
  readonly #byName: ReadonlyMap<string, StoredMember>;
  readonly #lists: ReadonlyMap<string, ManyToMany>;
  readonly #now: string;
  readonly #keyed: RecordReading['keyed'];
  readonly #dateFormat: DateFormat | undefined;
  readonly #unknownColumns = new Set<string>();

  constructor({ schema, collection, now, keyed, dateFormat }: RecordReading) {
    this.#schema = schema;
    this.#collection = collection;
    this.#roles = new Set(schema.roles.keys());
    this.#now = now;
    this.#keyed = keyed;
    this.#dateFormat = dateFormat;
    this.members = storedMembersOf(collection, schema);
    this.#byName = new Map(this.members.map((member) => [member.name, member]));
    this.#lists = new Map(manyToManyOf(collection).map((relation) => [relation.name, relation]));
  }

  read(
    { line, members, error, isText, isHeader = false }: SourceRecord,
    errors: ImportError[],
  ): RecordRead | undefined {
    const report = (message: string): void => void errors.push({ line, message });
    const before = errors.length;
    if (members === undefined) {
      report(error ?? 'expected a record');
      return undefined;
    }
    const values = new Map<string, Scalar | null>();
    const links = new Map<string, readonly string[]>();
    const keys = new Map<string, readonly Scalar[]>();
    let roles: readonly string[] | undefined;
    let isRefused = false;
    for (const [name, value] of members) {
      const member = this.#byName.get(name);
      const key = this.#keyed.get(name);
      const list = this.#lists.get(name);
      if (!this.#isMember(name)) {
        if (!isText) report(this.#unknown(name));
        else {
          isRefused = true;
          this.#reportColumn(name, errors);
        }
      } else if (isHeader) {
        // The name alone is checked.
      } else if (key !== undefined) {
        keys.set(name, this.#keys(name, key, { value, isText, report }));
        if (member === undefined) links.set(name, []);
        else values.set(name, null);
      } else if (member !== undefined)
        values.set(name, this.#value(this.#collection, member, { value, isText, report }));
      else if (list !== undefined) links.set(name, this.#ids(list, { value, isText, report }));
      else roles = this.#roleNames({ value, isText, report });
    }
    if (isHeader) return undefined;
    const given = new Set(
      [...members].flatMap(([name, value]) =>
        value === null && this.#byName.get(name)?.required === true ? [] : [name],
      ),
    );
    for (const member of this.members) {
      // An empty cell of a column that must have a value is one that its author left to the default.
      if (given.has(member.name)) continue;
      const value = this.#defaultOf(member);
      values.set(member.name, value);
      const isMade = member.name === 'id' && madeBy(this.#collection) === 'database';
      if (member.required && value === null && !isMade) report(`\`${member.name}\` must have a value`);
    }
    if (isRefused || errors.length > before) return undefined;
    const id = values.get('id') ?? undefined;
    return { line, id: id === undefined ? undefined : String(id), values, given, links, roles, keys };
  }

  #isMember(name: string): boolean {
    if (name === 'roles' && this.#collection.kind === 'users') return true;
    return this.#keyed.has(name) || this.#byName.has(name) || this.#lists.has(name);
  }

  #defaultOf({ name, default: otherwise }: StoredMember): Scalar | null {
    if (name === 'id') return madeBy(this.#collection) === 'service' ? newRecordId() : null;
    return valueOfDefault(otherwise, this.#now) ?? null;
  }

  #ids({ name, collection }: ManyToMany, { value, isText, report }: GivenValue): readonly string[] {
    const kind = keyKindIn(this.#schema, collection);
    const ids = elementsGiven(value, isText);
    if (ids === undefined) report(`\`${name}\`: expected a list of ids, found ${shown(value)}`);
    return (ids ?? []).flatMap((id) => {
      const read = kind.fromJson(isText ? (kind.fromQuery(String(id)) ?? id) : id, {});
      if (!read.error) return [String(read.value)];
      report(`\`${name}\`: ${read.error.detail}, found ${shown(id)}`);
      return [];
    });
  }

  /** A belongs_to has one value, or none for null, and a list any number. */
  #keys(name: string, { target, member }: TargetKey, { value, isText, report }: GivenValue): readonly Scalar[] {
    const given = this.#byName.has(name) ? (value === null ? [] : [value]) : elementsGiven(value, isText);
    const reportKey = (message: string): void => report(`\`${name}\`, ${message}`);
    if (given === undefined) report(`\`${name}\`: expected a list of values, found ${shown(value)}`);
    return (given ?? []).flatMap((each) => {
      const key = this.#value(target, member, { value: each, isText, report: reportKey });
      return key === null ? [] : [key];
    });
  }

  #roleNames({ value, isText, report }: GivenValue): readonly string[] {
    const names = elementsGiven(value, isText);
    if (names === undefined) report(`\`roles\`: expected a list of roles, found ${shown(value)}`);
    for (const name of names ?? []) {
      if (typeof name !== 'string' || !this.#roles.has(name)) report(`\`roles\`: unknown role ${shown(name)}`);
    }
    return [...new Set((names ?? []) as string[])];
  }

  /** The value that would be stored: an email as a registration stores it. */
  #value({ kind }: Collection, member: StoredMember, given: GivenValue): Scalar | null {
    const value = readValue(member, given, this.#dateFormat);
    const isEmail = kind === 'users' && member.name === 'email';
    return isEmail && typeof value === 'string' ? normalEmail(value) : value;
  }

  /** Reports a column of the header once, and not with each record. */
  #reportColumn(name: string, errors: ImportError[]): void {
    if (this.#unknownColumns.has(name)) return;
    this.#unknownColumns.add(name);
    errors.push({ line: 1, message: this.#unknown(name) });
  }

  #unknown(name: string): string {
    const near = nearest(name, [...this.#byName.keys(), ...this.#lists.keys()]);
    const hint = /[;,|\t]/.test(name)
      ? '; `--delimiter` names the character between the cells of the file'
      : hintOf(near);
    return `\`${this.#collection.name}\` has no field \`${name}\`${hint}`;
  }
}

interface GivenValue {
  readonly value: unknown;
  /** The value as CSV writes it. */
  readonly isText: boolean;
  readonly report: (message: string) => void;
}

function readValue(
  member: StoredMember,
  { value: given, isText, report }: GivenValue,
  dateFormat: DateFormat | undefined,
): Scalar | null {
  if (given === null || given === undefined) return null;
  const isDay = member.moment === 'day';
  // A day has no time to lose.
  const isOfFormat = dateFormat !== undefined && member.moment !== undefined && !(isDay && dateFormat.hasTime);
  const value = isOfFormat && typeof given === 'string' ? dateFormat.read(given, isDay) : given;
  if (value === undefined) {
    report(`\`${member.name}\`: expected ${dateFormat!.text}, found ${shown(given)}`);
    return null;
  }
  const json = isText ? member.fromText(value as string) : value;
  const read = member.read(json === undefined ? value : json);
  if (!read.error) return read.value;
  report(`\`${member.name}\`: ${read.error.detail}, found ${shown(given)}`);
  return null;
}

/** In CSV a list is separated by spaces. */
function elementsGiven(value: unknown, isText: boolean): readonly unknown[] | undefined {
  if (value === null) return [];
  if (isText) return (value as string).split(' ').filter((part) => part !== '');
  return Array.isArray(value) ? value : undefined;
}

const LONGEST_SHOWN = 60;

function shown(value: unknown): string {
  const text = value instanceof InexactNumeral ? value.text : (JSON.stringify(value) ?? 'nothing');
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`;
}
