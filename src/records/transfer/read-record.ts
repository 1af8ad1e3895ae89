/** A record of a file, checked against its collection: every error at once, each at its line. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { InexactNumeral, type Scalar } from '../../policy/values.ts';
import { newRecordId } from '../../record-id.ts';
import { ID_KIND } from '../../schema/fields/index.ts';
import type { Collection } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { valueOfDefault } from '../write/input.ts';
import { manyToManyOf, type StoredMember, storedMembersOf } from './members.ts';

/** A record as its file has it. `line` is the physical line that it begins on, from 1. */
export interface SourceRecord {
  readonly line: number;
  /** Not given where the line cannot be read: `error` says why. */
  readonly members?: ReadonlyMap<string, unknown>;
  readonly error?: string;
  /** Values are the text of CSV cells; null is null. */
  readonly isText: boolean;
}
export interface ImportError {
  /** Not given where the database alone knows. */
  readonly line?: number;
  readonly message: string;
}

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
}

export class RecordReader {
  readonly members: readonly StoredMember[];
  readonly #collection: Collection;
  readonly #roles: ReadonlySet<string>;
  readonly #byName: ReadonlyMap<string, StoredMember>;
  readonly #lists: ReadonlySet<string>;
  readonly #now: string;

  /** `roles`: the names that users may have. `now`: for defaults, canonical. */
  constructor(collection: Collection, roles: Iterable<string>, now: string) {
    this.#collection = collection;
    this.#roles = new Set(roles);
    this.#now = now;
    this.members = storedMembersOf(collection);
    this.#byName = new Map(this.members.map((member) => [member.name, member]));
    this.#lists = new Set(manyToManyOf(collection).map(({ name }) => name));
  }

  read({ line, members, error, isText }: SourceRecord, errors: ImportError[]): StagedRecord | undefined {
    const report = (message: string): void => void errors.push({ line, message });
    const before = errors.length;
    if (members === undefined) {
      report(error ?? 'expected a record');
      return undefined;
    }
    const values = new Map<string, Scalar | null>();
    const links = new Map<string, readonly string[]>();
    let roles: readonly string[] | undefined;
    for (const [name, value] of members) {
      const member = this.#byName.get(name);
      if (member !== undefined) values.set(name, this.#stored(member, readValue(member, { value, isText, report })));
      else if (this.#lists.has(name)) links.set(name, this.#ids(name, { value, isText, report }));
      else if (name === 'roles' && this.#collection.kind === 'users')
        roles = this.#roleNames({ value, isText, report });
      else report(this.#unknown(name));
    }
    const given = new Set(
      [...members].flatMap(([name, value]) =>
        value === null && this.#byName.get(name)?.required === true ? [] : [name],
      ),
    );
    for (const member of this.members) {
      if (errors.length > before) return undefined;
      // An empty cell of a column that must have a value is one that its author left to the default.
      const isLeftOut = !values.has(member.name) || (member.required && values.get(member.name) === null);
      if (isLeftOut) values.set(member.name, this.#defaultOf(member));
      if (member.required && values.get(member.name) === null) report(`\`${member.name}\` must have a value`);
    }
    if (errors.length > before) return undefined;
    return { line, id: values.get('id') as string, values, given, links, roles };
  }

  #defaultOf({ name, default: otherwise }: StoredMember): Scalar | null {
    if (name === 'id') return newRecordId();
    return valueOfDefault(otherwise, this.#now) ?? null;
  }

  #ids(name: string, { value, isText, report }: GivenValue): readonly string[] {
    const ids = elementsGiven(value, isText);
    if (ids === undefined) report(`\`${name}\`: expected a list of ids, found ${shown(value)}`);
    return (ids ?? []).flatMap((id) => {
      const read = ID_KIND.fromJson(id, {});
      if (!read.error) return [read.value as string];
      report(`\`${name}\`: ${read.error.detail}, found ${shown(id)}`);
      return [];
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

  /** The value that a registration would store. */
  #stored({ name }: StoredMember, value: Scalar | null): Scalar | null {
    const isEmail = this.#collection.kind === 'users' && name === 'email';
    return isEmail && typeof value === 'string' ? normalEmail(value) : value;
  }

  #unknown(name: string): string {
    const near = nearest(name, [...this.#byName.keys(), ...this.#lists]);
    return `\`${this.#collection.name}\` has no field \`${name}\`${hintOf(near)}`;
  }
}

interface GivenValue {
  readonly value: unknown;
  /** The value as CSV writes it. */
  readonly isText: boolean;
  readonly report: (message: string) => void;
}

function readValue(member: StoredMember, { value, isText, report }: GivenValue): Scalar | null {
  if (value === null || value === undefined) return null;
  const json = isText ? member.fromText(value as string) : value;
  const read = member.read(json === undefined ? value : json);
  if (!read.error) return read.value;
  report(`\`${member.name}\`: ${read.error.detail}, found ${shown(value)}`);
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
