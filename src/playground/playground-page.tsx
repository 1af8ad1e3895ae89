/** The page: texts at one side, the truth table at the other. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { ACTIONS, type Action } from '../policy/types.ts';
import { parseSchema } from '../schema/load.ts';
import type { Schema } from '../schema/model/model.ts';
import { outcomeOf } from './decide.ts';
import { hashOf, type PageState, stateInHash } from './page-state.ts';
import { words } from './page-words.ts';
import { projectOf } from './project.ts';
import { zipOf } from './project-zip.ts';
import { type PlaygroundWorld, readWorld } from './read-world.ts';
import { RECIPES } from './recipes.ts';

const FIRST: PageState = { ...RECIPES[0]!, action: 'read' };
const KEEP_AFTER_MS = 300;

/** The state of the address, then that of the person, which the address follows. */
function usePageState() {
  const [state, setState] = useState<PageState>();
  const [isTooLong, setTooLong] = useState(false);
  useEffect(() => {
    const read = (): void => void stateInHash(location.hash.slice(1)).then((found) => setState(found ?? FIRST));
    read();
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  useEffect(() => {
    if (state === undefined || state === FIRST) return;
    const timer = setTimeout(async () => {
      const hash = await hashOf(state);
      setTooLong(hash === undefined);
      history.replaceState(null, '', hash === undefined ? ' ' : `#${hash}`);
    }, KEEP_AFTER_MS);
    return () => clearTimeout(timer);
  }, [state]);
  return { state, isTooLong, change: (changes: Partial<PageState>) => setState({ ...(state ?? FIRST), ...changes }) };
}

export function Playground(): JSX.Element {
  const { state = FIRST, isTooLong, change } = usePageState();
  const { schema: text, world: worldText } = state;
  const { schema, issues } = useMemo(() => parseSchema(text), [text]);
  const world = useMemo(() => schema && readWorld(worldText, schema), [schema, worldText]);
  const errors = [
    ...issues
      .filter(({ severity }) => severity === 'error')
      .map(({ line, message }) => `${words.line} ${line}: ${message}`),
    ...(world?.errors ?? []),
  ];
  return (
    <main id="content" class="page playground" tabIndex={-1}>
      <h1>{words.title}</h1>
      <p class="hint">{words.intro}</p>
      <Recipes onChoose={change} />
      <div class="sides">
        <div>
          <TextSide label={words.schema} rows={22} text={text} onText={(schema) => change({ schema })} />
          <TextSide label={words.world} rows={14} text={worldText} onText={(world) => change({ world })} />
        </div>
        <div>
          {errors.length > 0 && (
            <div class="problem" role="alert">
              <p>{words.errors}</p>
              <ul>
                {errors.map((error) => (
                  <li key={error}>{error}</li>
                ))}
              </ul>
            </div>
          )}
          {schema !== undefined && world !== undefined ? (
            <Decisions schema={schema} world={world} state={state} onChange={change} />
          ) : (
            <p class="empty">{words.noCollection}</p>
          )}
          {isTooLong && <p class="hint">{words.tooLong}</p>}
        </div>
      </div>
    </main>
  );
}

function Recipes({ onChoose }: { readonly onChoose: (state: Partial<PageState>) => void }): JSX.Element {
  return (
    <p class="actions">
      {`${words.recipe}: `}
      {RECIPES.map(({ title, ...recipe }) => (
        <button key={title} type="button" onClick={() => onChoose(recipe)}>
          {title}
        </button>
      ))}
    </p>
  );
}

interface TextSideProps {
  readonly label: string;
  readonly rows: number;
  readonly text: string;
  readonly onText: (text: string) => void;
}

function TextSide({ label, rows, text, onText }: TextSideProps): JSX.Element {
  return (
    <label>
      {label}
      <textarea
        class="file-text"
        rows={rows}
        spellcheck={false}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
      />
    </label>
  );
}

interface DecisionsProps {
  readonly schema: Schema;
  readonly world: PlaygroundWorld;
  readonly state: PageState;
  readonly onChange: (state: Partial<PageState>) => void;
}

function Decisions({ schema, world, state, onChange }: DecisionsProps): JSX.Element {
  const names = [...schema.collections.keys()];
  const collection = names.includes(state.collection) ? state.collection : names[0]!;
  const action = ACTIONS.find((each) => each === state.action) ?? 'read';
  const download = (): void => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(zipOf(projectOf({ schema, world, state: { ...state, collection } })));
    link.download = 'bylaw-project.zip';
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <>
      <div class="question">
        <Choice
          label={words.collection}
          value={collection}
          values={names}
          onChoose={(name) => onChange({ collection: name })}
        />
        <Choice label={words.action} value={action} values={ACTIONS} onChoose={(name) => onChange({ action: name })} />
      </div>
      <h2>{words.table}</h2>
      <OutcomeTable schema={schema} world={world} collection={collection} action={action} />
      <div class="actions">
        <button type="button" onClick={() => void navigator.clipboard.writeText(location.href)}>
          {words.copyLink}
        </button>
        <button type="button" onClick={download}>
          {words.project}
        </button>
      </div>
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly values: readonly string[];
  readonly onChoose: (value: string) => void;
}

function Choice({ label, value, values, onChoose }: ChoiceProps): JSX.Element {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {values.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}

interface OutcomeTableProps {
  readonly schema: Schema;
  readonly world: PlaygroundWorld;
  readonly collection: string;
  readonly action: Action;
}

function OutcomeTable({ schema, world, collection, action }: OutcomeTableProps): JSX.Element {
  const rows = world.rows.get(collection) ?? [];
  if (rows.length === 0) return <p class="empty">{words.noRows}</p>;
  return (
    <div class="scroll" role="region" tabIndex={0} aria-label={words.table}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">{words.row}</th>
            {world.callers.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, row }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {world.callers.map((caller) => {
                const outcome = outcomeOf({ schema, world, collection, action }, caller.row, row);
                return (
                  <td key={caller.name}>
                    <span class={`cell ${outcome}`}>{words.outcomes[outcome]}</span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
