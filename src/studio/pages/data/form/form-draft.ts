/** The changes of a form that were not saved. Reloads of the tab keep them. */
import { BylawError } from '../../../../client/client.ts';
import { keepTabDraft, keptTabDraft } from '../../../app/tab-drafts.ts';
import type { ServedCollection, ServedField, ServedRelation } from '../../../data/schema-answer.ts';
import { wording } from '../../../en.ts';
import type { StudioRecord } from '../record-query.ts';
import type { TaggedRecord } from '../record-reader.ts';

/** The texts of the controls that a person changed, and the ids of references; null is the null of the API. */
export type FormDraft = Readonly<Record<string, string | number | null | LinkEdit>>;

type Ids = readonly StudioRecord['id'][];

/** The ids that a person added to a many_to_many, and those that the person removed: a record shows only its first links. */
export interface LinkEdit {
  readonly add: Ids;
  readonly remove: Ids;
}

export type FormMember = ServedField | ServedRelation;

/** The members that the form of a stored record can write. */
export const formMembersOf = ({ fields, relations }: ServedCollection): readonly FormMember[] =>
  [...fields, ...relations].filter(({ read_only: isReadOnly }) => !isReadOnly);

/** The members that the form of a new record can write: the id, too, where callers make it. */
export const newMembersOf = (collection: ServedCollection): readonly FormMember[] =>
  collection.key.made_by === 'caller'
    ? [{ ...CALLERS_ID, type: collection.key.type === 'int' ? 'int' : 'id' }, ...formMembersOf(collection)]
    : formMembersOf(collection);

const CALLERS_ID = { name: 'id', required: true, read_only: false, unique: true, search: false };

/** A draft, as the tab keeps it. */
interface KeptDraft {
  readonly values: FormDraft;
  /** The record as it was when the form was opened, which the values are saved over; undefined for a new one. */
  readonly base?: TaggedRecord | undefined;
}

const nameOfDraft = (collection: string, id: string | undefined): string => `draft:${collection}/${id ?? ''}`;

export const keptDraft = (collection: string, id: string | undefined): KeptDraft | undefined =>
  keptTabDraft<KeptDraft>(nameOfDraft(collection, id));

/** @param draft undefined: the tab keeps none */
export const keepDraft = (collection: string, id: string | undefined, draft: KeptDraft | undefined): void =>
  keepTabDraft(nameOfDraft(collection, id), draft);

/** A numeral beyond the doubles would be sent as null. */
const isNumeral = (text: string): boolean =>
  /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text));

/** The control has the JSON of the value. */
export const showsJson = (member: FormMember): boolean =>
  'type' in member && (member.type === 'json' || member.type === 'point' || member.type.endsWith('[]'));

function isJsonText(text: string): boolean {
  try {
    let isSendable = true;
    JSON.parse(text, (_, value: unknown) => {
      // Infinity would be sent as null.
      isSendable &&= value !== Number.POSITIVE_INFINITY && value !== Number.NEGATIVE_INFINITY;
    });
    return isSendable;
  } catch {
    return false;
  }
}

/** The value of a text. A text that is not of the type is sent as it is: the service says what it expects. */
function sentValueOf(member: FormMember, text: string): unknown {
  const type = 'type' in member ? member.type : 'id';
  if (text === '' && type !== 'string') return null;
  if (showsJson(member)) return isJsonText(text) ? JSON.parse(text) : text;
  if (type === 'bool') return text === 'true';
  if ((type === 'int' || type === 'float') && isNumeral(text)) return Number(text);
  if (type === 'datetime' && /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text)) return instantOf(text);
  return text;
}

/** `datetime-local` has no zone: the text is of the zone of the browser. */
function instantOf(text: string): string {
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? text : moment.toISOString();
}

/** The text of a control for a value of the API. */
export function controlTextOf(member: FormMember, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if ('type' in member && member.type === 'datetime') return localTextOf(String(value));
  return showsJson(member) ? JSON.stringify(value) : String(value);
}

function localTextOf(value: string): string {
  const moment = new Date(value);
  if (Number.isNaN(moment.getTime())) return value;
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** The ids of a many_to_many that the record shows, after the edit. */
export function linkedIdsOf(name: string, record: StudioRecord | undefined, edit = NO_EDIT): Ids {
  const shown = ((record?.expand?.[name] ?? []) as readonly StudioRecord[]).map(({ id }) => id);
  return [...shown.filter((id) => !edit.remove.includes(id)), ...edit.add.filter((id) => !shown.includes(id))];
}

const NO_EDIT: LinkEdit = { add: [], remove: [] };

export function addLink(id: StudioRecord['id'], { add, remove }: LinkEdit = NO_EDIT): LinkEdit {
  if (remove.includes(id)) return { add, remove: remove.filter((each) => each !== id) };
  return { add: [...add, id], remove };
}

/** The edit that undoes this one, where each of its ids changed a link. */
const reversed = ({ add, remove }: LinkEdit): LinkEdit => ({ add: remove, remove: add });

export const removeLink = (id: StudioRecord['id'], edit = NO_EDIT): LinkEdit => reversed(addLink(id, reversed(edit)));

const isLinkEdit = (given: FormDraft[string]): given is LinkEdit => typeof given === 'object' && given !== null;

/** `data` of the write. Unchanged members are left out, and keep their value or take their default. */
export function formData(collection: ServedCollection, draft: FormDraft): Readonly<Record<string, unknown>> {
  const members = newMembersOf(collection).filter(({ name }) => draft[name] !== undefined);
  return Object.fromEntries(
    members.map((member) => {
      const given = draft[member.name]!;
      return [member.name, typeof given === 'string' ? sentValueOf(member, given) : given];
    }),
  );
}

/** As `formData`. Throws BylawError for a text that is not JSON where it must be: a json field takes any text as a string. */
export function checkedData(collection: ServedCollection, draft: FormDraft): ReturnType<typeof formData> {
  const isBroken = (member: FormMember, text = draft[member.name]): boolean =>
    showsJson(member) && typeof text === 'string' && text !== '' && !isJsonText(text);
  const errors = formMembersOf(collection).flatMap((member) =>
    isBroken(member) ? [{ pointer: `/data/${member.name}`, code: 'wrong_type', detail: wording.jsonExpected }] : [],
  );
  if (errors.length > 0)
    throw new BylawError({
      type: 'about:blank',
      title: wording.notJson,
      status: 422,
      code: 'validation_failed',
      errors,
    });
  return formData(collection, draft);
}

/** The write that undoes the one of `draft`. Undefined if a former value is not known, as a hidden one. */
export function undoOf(
  collection: ServedCollection,
  draft: FormDraft,
  before: StudioRecord,
): Readonly<Record<string, unknown>> | undefined {
  const members = formMembersOf(collection).filter(({ name }) => draft[name] !== undefined);
  const values = members.map(({ name }) => [name, formerValueOf(name, draft[name]!, before)] as const);
  return values.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(values);
}

function formerValueOf(name: string, given: FormDraft[string], before: StudioRecord): unknown {
  if (!isLinkEdit(given)) return before[name];
  // An added link may be one that the record had and did not show.
  const isWhole = before.expand?.[name] !== undefined && before.expand_more?.includes(name) !== true;
  return given.add.length === 0 || isWhole ? reversed(given) : undefined;
}
