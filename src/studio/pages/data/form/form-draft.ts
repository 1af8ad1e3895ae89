/** The changes of a form that were not saved. Reloads of the tab keep them. */
import { keepTabDraft, keptTabDraft } from '../../../app/tab-drafts.ts';
import type { ServedCollection, ServedField, ServedRelation } from '../../../data/schema-answer.ts';
import type { StudioRecord } from '../record-query.ts';

/** The texts of the controls that a person changed; null is the null of the API. A list: ids of related records. */
export type FormDraft = Readonly<Record<string, string | null | readonly string[]>>;

export type FormMember = ServedField | ServedRelation;

/** The members that a form can write. */
export const formMembersOf = ({ fields, relations }: ServedCollection): readonly FormMember[] =>
  [...fields, ...relations].filter(({ read_only: isReadOnly }) => !isReadOnly);

const nameOfDraft = (collection: string, id: string | undefined): string => `draft:${collection}/${id ?? ''}`;

export const keptDraft = (collection: string, id: string | undefined): FormDraft =>
  keptTabDraft<FormDraft>(nameOfDraft(collection, id)) ?? {};

export const keepDraft = (collection: string, id: string | undefined, draft: FormDraft): void =>
  keepTabDraft(nameOfDraft(collection, id), Object.keys(draft).length === 0 ? undefined : draft);

const isNumeral = (text: string): boolean => /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text);

/** The value of a text. A text that is not of the type is sent as it is: the service says what it expects. */
function sentValueOf(member: FormMember, text: string | null): unknown {
  if (text === null) return null;
  const type = 'type' in member ? member.type : 'id';
  const isText = type === 'string' && !('enum' in member && member.enum !== undefined);
  if (text === '' && !isText) return null;
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
  return String(value);
}

function localTextOf(value: string): string {
  const moment = new Date(value);
  if (Number.isNaN(moment.getTime())) return value;
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** The ids of a many_to_many. */
export const linkedIdsOf = (name: string, record: StudioRecord | undefined): readonly string[] =>
  ((record?.expand?.[name] ?? []) as readonly StudioRecord[]).map(({ id }) => String(id));

/** `data` of the write. Unchanged members are left out, and keep their value or take their default. */
export function formData(collection: ServedCollection, draft: FormDraft): Readonly<Record<string, unknown>> {
  const members = formMembersOf(collection).filter(({ name }) => draft[name] !== undefined);
  return Object.fromEntries(
    members.map((member) => {
      const given = draft[member.name] as string | null | readonly string[];
      return [member.name, typeof given === 'string' || given === null ? sentValueOf(member, given) : { set: given }];
    }),
  );
}

/** The write that undoes the one of `draft`. */
export function undoOf(
  collection: ServedCollection,
  draft: FormDraft,
  before: StudioRecord,
): Readonly<Record<string, unknown>> {
  const members = formMembersOf(collection).filter(({ name }) => draft[name] !== undefined);
  return Object.fromEntries(
    members.map(({ name }) => [
      name,
      Array.isArray(draft[name]) ? { set: linkedIdsOf(name, before) } : (before[name] ?? null),
    ]),
  );
}
