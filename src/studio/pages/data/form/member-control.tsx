/** A control for one member of a record, by its type. */
import type { JSX, TargetedInputEvent } from 'preact';
import { useId, useState } from 'preact/hooks';
import { collectionNamed } from '../../../app/session-state.ts';
import type { ServedField, ServedRelation } from '../../../data/schema-answer.ts';
import { wording } from '../../../en.ts';
import { FileUpload } from '../../../parts/file-upload.tsx';
import type { StudioRecord } from '../record-query.ts';
import {
  addLink,
  controlTextOf,
  type FormDraft,
  type FormMember,
  type LinkEdit,
  linkedIdsOf,
  removeLink,
  showsJson,
} from './form-draft.ts';
import { ReferenceBox, recordTitleOf } from './reference-box.tsx';

interface MemberControlProps {
  readonly member: FormMember;
  /** The record before the form; undefined for a new one. */
  readonly record: StudioRecord | undefined;
  readonly draft: FormDraft;
  readonly problem: string | undefined;
  /** A rule lets the caller not write it. */
  readonly isForbidden: boolean;
  readonly onDraft: (value: FormDraft[string]) => void;
}

export function MemberControl(props: MemberControlProps): JSX.Element {
  const { member, problem, isForbidden } = props;
  const id = useId();
  const isField = 'type' in member;
  const otherwise = props.record === undefined ? member.default : undefined;
  return (
    <div class="member">
      <label for={id}>
        {member.name}
        {member.required && otherwise === undefined && <span class="required"> {wording.required}</span>}
        {isOfRequest(otherwise) && <span class="required">{` ${wording.byDefault} ${otherwise}`}</span>}
      </label>
      {isField ? (
        <FieldControl {...props} id={id} field={member} />
      ) : member.kind === 'many_to_many' ? (
        <LinksControl {...props} id={id} relation={member} />
      ) : (
        <ReferenceControl {...props} id={id} relation={member} />
      )}
      {isForbidden && <p class="hint">{wording.fieldForbidden}</p>}
      {problem !== undefined && (
        <p class="field-problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}

const INPUT_TYPES: Readonly<Record<string, 'datetime-local' | 'date' | 'time'>> = {
  datetime: 'datetime-local',
  date: 'date',
  time: 'time',
};
const NUMERALS = new Set(['int', 'float', 'bigint', 'decimal']);
/** The option for null. No string has the character. */
const NULL_CHOICE = '\0';
/** A longer string gets several lines. */
const LONGEST_LINE = 200;

type InputOf = TargetedInputEvent<HTMLInputElement>;

interface FieldControlProps extends MemberControlProps {
  readonly id: string;
  readonly field: ServedField;
}

function FieldControl({ id, field, record, draft, problem, isForbidden, onDraft }: FieldControlProps): JSX.Element {
  const { name, type, required, enum: allowed, default: otherwise } = field;
  const given = draft[name];
  const stored = record === undefined ? defaultText(otherwise) : controlTextOf(field, record[name]);
  const text = given === undefined ? stored : (given as string | null);
  const shared = { id, name, disabled: isForbidden, 'aria-invalid': problem !== undefined };
  const choices = type === 'bool' ? ['true', 'false'] : allowed?.map(String);
  if (choices !== undefined) {
    const choose = (value: string): void => onDraft(value === NULL_CHOICE ? null : value);
    return (
      <select {...shared} value={text ?? NULL_CHOICE} onChange={(event) => choose(event.currentTarget.value)}>
        {(!required || text === null) && <option value={NULL_CHOICE}>{wording.nullValue}</option>}
        {choices.map((each) => (
          // Without a value, an option has that of its text, with fewer spaces.
          <option key={each} value={each}>
            {each === '' ? wording.emptyValue : each}
          </option>
        ))}
      </select>
    );
  }
  if (showsJson(field)) {
    const json = { ...shared, value: text ?? '', placeholder: wording.nullValue, spellcheck: false };
    return <textarea {...json} rows={4} onInput={(event) => onDraft(event.currentTarget.value)} />;
  }
  if (type === 'string') return <TextControl field={field} text={text} shared={shared} onDraft={onDraft} />;
  const timed = INPUT_TYPES[type];
  const typed = { ...shared, value: text ?? '', onInput: (event: InputOf) => onDraft(event.currentTarget.value) };
  if (timed === undefined) {
    const mode = NUMERALS.has(type) ? 'decimal' : undefined;
    return <input {...typed} inputMode={mode} placeholder={wording.nullValue} />;
  }
  return (
    <>
      <input {...typed} type={timed} step={1} />
      {type === 'datetime' && <p class="hint">{Intl.DateTimeFormat().resolvedOptions().timeZone}</p>}
    </>
  );
}

/** A constant is shown; a value of the request is the service's to fill in. */
const defaultText = (otherwise: ServedField['default']): string | null =>
  otherwise === undefined || isOfRequest(otherwise) ? null : String(otherwise);

const isOfRequest = (otherwise: ServedField['default']): boolean => String(otherwise).startsWith('@');

interface TextControlProps {
  readonly field: ServedField;
  readonly text: string | null;
  readonly shared: { readonly id: string; readonly name: string; readonly disabled: boolean };
  readonly onDraft: (value: string | null) => void;
}

/** The empty string and null differ: a string that may be null has a box for it. */
function TextControl({ field, text, shared, onDraft }: TextControlProps): JSX.Element {
  const { required, max } = field;
  const props = {
    ...shared,
    dir: 'auto' as const,
    placeholder: text === null ? wording.nullValue : wording.emptyValue,
    value: text ?? '',
  };
  // An input of one line loses line breaks. The control stays the same while a person types.
  const [isLong] = useState(max === undefined || Number(max) > LONGEST_LINE || /[\r\n]/.test(text ?? ''));
  return (
    <>
      {isLong ? (
        <textarea {...props} rows={4} onInput={(event) => onDraft(event.currentTarget.value)} />
      ) : (
        <input {...props} onInput={(event) => onDraft(event.currentTarget.value)} />
      )}
      {!required && (
        <label class="null-box">
          <input
            type="checkbox"
            disabled={shared.disabled}
            checked={text === null}
            onChange={(event) => onDraft(event.currentTarget.checked ? null : '')}
          />
          {wording.nullValue}
        </label>
      )}
    </>
  );
}

interface RelationControlProps extends MemberControlProps {
  readonly id: string;
  readonly relation: ServedRelation;
}

function ReferenceControl(props: RelationControlProps): JSX.Element {
  const { id, relation, record, draft, problem, isForbidden, onDraft } = props;
  const { name, collection } = relation;
  const [chosen, setChosen] = useState<string>();
  const target = record?.expand?.[name] as StudioRecord | null | undefined;
  const known = target ? recordTitleOf(collectionNamed(collection), target) : undefined;
  const given = draft[name] as StudioRecord['id'] | null | undefined;
  const stored = record?.[name] as StudioRecord['id'] | null | undefined;
  const choose = (value: StudioRecord['id'] | null, title: string | undefined): void => {
    setChosen(title);
    onDraft(value);
  };
  return (
    <>
      <ReferenceBox
        id={id}
        collection={collection}
        value={given === undefined ? (stored ?? null) : given}
        title={given === undefined ? known : chosen}
        isDisabled={isForbidden}
        isInvalid={problem !== undefined}
        onChoose={choose}
      />
      {collection === UPLOADED && (
        <FileUpload isSingle isDisabled={isForbidden} onUploaded={(file) => choose(file.id, file.name)} />
      )}
    </>
  );
}

/** The collection whose records are made by uploads. */
const UPLOADED = 'files';

/** The linked records as a list, with a box that adds one. */
function LinksControl(props: RelationControlProps): JSX.Element {
  const { id, relation, record, draft, problem, isForbidden, onDraft } = props;
  const { name, collection } = relation;
  const target = collectionNamed(collection);
  const stored = (record?.expand?.[name] ?? []) as readonly StudioRecord[];
  const [titles, setTitles] = useState<Readonly<Record<string, string>>>({});
  const known = Object.fromEntries(stored.map((each) => [String(each.id), recordTitleOf(target, each)]));
  const edit = draft[name] as LinkEdit | undefined;
  const ids = linkedIdsOf(name, record, edit);
  return (
    <div class="links">
      <ul>
        {ids.map((each) => (
          <li key={each}>
            <bdi>{titles[each] ?? known[each] ?? each}</bdi>
            <button
              type="button"
              class="unlink"
              disabled={isForbidden}
              aria-keyshortcuts="-"
              aria-label={`${wording.removeTerm}: ${titles[each] ?? known[each] ?? each}`}
              onClick={() => onDraft(removeLink(each, edit))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <ReferenceBox
        // A new box after each choice.
        key={ids.length}
        id={id}
        collection={collection}
        value={null}
        title={undefined}
        isDisabled={isForbidden}
        isInvalid={problem !== undefined}
        onChoose={(value, title) => {
          if (value === null || ids.includes(value)) return;
          if (title !== undefined) setTitles({ ...titles, [value]: title });
          onDraft(addLink(value, edit));
        }}
      />
    </div>
  );
}
