/** The columns: which, in which order, how wide. The address has the choice and the order; this device keeps all three. */
import type { JSX } from 'preact';
import { changeQuery } from '../../app/page-address.ts';
import { keep } from '../../app/preferences.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { setWidth, widthsOf } from './column-widths.ts';
import { gridColumnsOf, type RecordSearch } from './record-query.ts';

interface ColumnChoiceProps {
  readonly collection: ServedCollection;
  readonly search: RecordSearch;
}

export function ColumnChoice({ collection, search }: ColumnChoiceProps): JSX.Element {
  const shown = search.columns.map(({ name }) => name);
  const others = gridColumnsOf(collection).filter(({ name }) => !shown.includes(name));
  const show = (names: readonly string[]): void => {
    const columns = names.join(',');
    if (columns === '') return;
    keep(`columns:${collection.name}`, columns);
    changeQuery({ columns }, 'replace');
  };
  const move = (at: number, to: number): void => show(shown.toSpliced(at, 1).toSpliced(to, 0, shown[at]!));
  return (
    <details class="menu-button">
      <summary aria-keyshortcuts="v">{wording.columns}</summary>
      <fieldset class="menu column-choice">
        <legend>{wording.columns}</legend>
        {shown.map((name, i) => (
          <div key={name} role="group" aria-label={name}>
            <label>
              <input type="checkbox" checked onChange={() => show(shown.filter((each) => each !== name))} />
              {name}
            </label>
            <WidthField collection={collection.name} column={name} />
            <button
              type="button"
              disabled={i === 0}
              aria-label={`${wording.moveBefore}: ${name}`}
              aria-keyshortcuts="Shift+b"
              onClick={() => move(i, i - 1)}
            >
              ↑
            </button>
            <button
              type="button"
              disabled={i === shown.length - 1}
              aria-label={`${wording.moveAfter}: ${name}`}
              aria-keyshortcuts="Shift+a"
              onClick={() => move(i, i + 1)}
            >
              ↓
            </button>
          </div>
        ))}
        {others.map(({ name }) => (
          <label key={name}>
            <input type="checkbox" checked={false} onChange={() => show([...shown, name])} />
            {name}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

/** Empty: the width of the type. */
function WidthField({ collection, column }: { readonly collection: string; readonly column: string }): JSX.Element {
  const given = widthsOf(collection)[column];
  return (
    <input
      type="number"
      min={48}
      max={1200}
      step={10}
      aria-label={`${wording.width}: ${column}`}
      placeholder={wording.width}
      value={given === undefined ? '' : String(given)}
      onChange={(event) => {
        const { value } = event.currentTarget;
        setWidth(collection, column, value === '' ? undefined : Number(value));
      }}
    />
  );
}
