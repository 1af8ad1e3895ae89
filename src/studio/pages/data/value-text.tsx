/** Values as people read them. Null, empty and hidden look different, and say what they are. */
import type { JSX } from 'preact';
import { pathTo } from '../../app/page-address.ts';
import { wording } from '../../en.ts';
import type { StudioRecord } from './record-query.ts';
import { WITHHELD } from './viewed-records.ts';

const ValueMark = ({ text, title }: { readonly text: string; readonly title?: string }): JSX.Element => (
  <span class="mark" title={title}>
    {text}
  </span>
);

/** Only addresses that cannot run script. */
const isLink = (text: string): boolean => /^(?:https?:\/\/|mailto:)\S+$/i.test(text);

interface ValueTextProps {
  readonly value: unknown;
  readonly type?: string | undefined;
}

/** `undefined` is a member that the answer leaves out: a rule hides it. */
export function ValueText({ value, type }: ValueTextProps): JSX.Element {
  if (value === undefined) return <ValueMark text={wording.hiddenValue} title={wording.hiddenTitle} />;
  if (value === WITHHELD) return <ValueMark text={wording.withheldValue} title={wording.withheldTitle} />;
  if (value === null) return <ValueMark text={wording.nullValue} />;
  if (value === '') return <ValueMark text={wording.emptyValue} />;
  if (type === 'datetime' && typeof value === 'string') return <MomentText value={value} />;
  if (typeof value === 'string' && isLink(value)) {
    return (
      <a href={value} target="_blank" rel="noopener noreferrer" dir="auto">
        {value}
      </a>
    );
  }
  if (type === 'id' || type === 'uuid') return <code>{String(value)}</code>;
  return <span dir="auto">{typeof value === 'object' ? JSON.stringify(value) : String(value)}</span>;
}

/** To the minute in the zone of the browser; the exact value is the title. */
function MomentText({ value }: { readonly value: string }): JSX.Element {
  const moment = new Date(value);
  const text = Number.isNaN(moment.getTime()) ? value : moment.toLocaleString(undefined, MOMENT_FORMAT);
  return (
    <time dateTime={value} title={value}>
      {text}
    </time>
  );
}
const MOMENT_FORMAT: Intl.DateTimeFormatOptions = { dateStyle: 'medium', timeStyle: 'short' };

interface ReferenceTextProps {
  readonly record: StudioRecord;
  readonly name: string;
  readonly collection: string;
  readonly title: string | null | undefined;
}

/** A related record by its title. Without a readable target it is shown by its id. */
export function ReferenceText({ record, name, collection, title }: ReferenceTextProps): JSX.Element {
  const id = record[name];
  if (id === undefined || id === null || id === WITHHELD) return <ValueText value={id} />;
  const target = record.expand?.[name] as StudioRecord | null | undefined;
  const text = title && target ? target[title] : undefined;
  return (
    <a href={pathTo('data', collection, { record: String(id) })} dir="auto" title={String(id)}>
      {text === undefined || text === null || text === '' ? String(id) : String(text)}
    </a>
  );
}
