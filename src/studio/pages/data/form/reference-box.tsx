/** Finds a record by its title, or takes its id. A combobox with a list (WAI-ARIA). */
import type { JSX } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { collectionNamed } from '../../../app/session-state.ts';
import { service } from '../../../data/api-service.ts';
import type { ServedCollection } from '../../../data/schema-answer.ts';
import { wording } from '../../../en.ts';
import { OptionList } from '../../../parts/option-list.tsx';
import { idOfText } from '../id-text.ts';
import type { StudioRecord } from '../record-query.ts';

interface ReferenceBoxProps {
  readonly id: string;
  readonly collection: string;
  /** The chosen id. */
  readonly value: StudioRecord['id'] | null;
  /** The title of the chosen record, where it is known. */
  readonly title: string | undefined;
  readonly isDisabled: boolean;
  readonly isInvalid: boolean;
  readonly onChoose: (id: StudioRecord['id'] | null, title: string | undefined) => void;
}

const SEARCH_AFTER_MS = 200;
const MOST_FOUND = 10;

export const recordTitleOf = (collection: ServedCollection | undefined, record: StudioRecord): string => {
  const value = collection?.title ? record[collection.title] : undefined;
  return value === undefined || value === null || value === '' ? String(record.id) : String(value);
};

async function findByTitle(target: ServedCollection, text: string): Promise<readonly StudioRecord[]> {
  const { title, fields, name } = target;
  const isSearched = fields.some((field) => field.name === title && field.search);
  const needle = JSON.stringify(text.trim());
  const filter =
    title && text.trim() !== '' ? `${title} ${isSearched ? 'matches' : 'starts with'} ${needle}` : undefined;
  const query = { limit: MOST_FOUND, ...(filter === undefined ? {} : { filter }) };
  return (await service.collection(name).query(query)).data as readonly StudioRecord[];
}

/** The records that begin with the text, shortly after the last key; undefined while the list is closed. */
function useFound(target: ServedCollection | undefined, text: string | undefined): readonly StudioRecord[] | undefined {
  const [found, setFound] = useState<readonly StudioRecord[]>();
  useEffect(() => {
    setFound(undefined);
    if (text === undefined || target?.can.list !== true) return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      // A list that cannot be read leaves the box for ids.
      findByTitle(target, text).then(
        (records) => isCurrent && setFound(records),
        () => undefined,
      );
    }, SEARCH_AFTER_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [target?.name, text]);
  return found;
}

export function ReferenceBox(props: ReferenceBoxProps): JSX.Element {
  const { id, collection, value, title, isDisabled, isInvalid, onChoose } = props;
  const target = collectionNamed(collection);
  const [text, setText] = useState<string>();
  const [at, setAt] = useState(-1);
  const list = useId();
  const found = useFound(target, text);
  const choose = (record: StudioRecord | undefined): void => {
    if (record !== undefined) onChoose(record.id, recordTitleOf(target, record));
    setText(undefined);
    setAt(-1);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const last = (found?.length ?? 0) - 1;
    if (event.key === 'ArrowDown') setAt(Math.min(at + 1, last));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else if (event.key === 'Enter' && at >= 0) choose(found?.[at]);
    else if (event.key === 'Escape' && text !== undefined) choose(undefined);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const leave = (): void => {
    // A text that was not chosen is an id, or nothing. A list that is late, or cannot be read, finds nothing.
    if (text?.trim() === '') onChoose(null, undefined);
    else if (text !== undefined && (found ?? []).length === 0)
      onChoose(idOfText(target?.key.type, text.trim()), undefined);
    choose(undefined);
  };
  return (
    <div class="reference-box">
      <input
        id={id}
        // biome-ignore lint/a11y/noRedundantRoles: an input has this role only with a `list`
        role="combobox"
        list={undefined}
        autocomplete="off"
        placeholder={wording.findRecord}
        disabled={isDisabled}
        aria-invalid={isInvalid}
        aria-expanded={found !== undefined}
        aria-controls={list}
        aria-activedescendant={at >= 0 ? `${list}-${at}` : undefined}
        value={text ?? title ?? value ?? ''}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onBlur={leave}
      />
      <OptionList
        id={list}
        label={collection}
        options={(found ?? []).map((record) => ({ key: String(record.id), text: recordTitleOf(target, record) }))}
        at={at}
        isHidden={found === undefined}
        onChoose={(i) => choose(found?.[i])}
      />
    </div>
  );
}
