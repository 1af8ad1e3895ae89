import type { JSX } from 'preact';
import { schema } from '../../app/session-state.ts';
import { wording } from '../../en.ts';

interface RoleChoiceProps {
  readonly chosen: readonly string[];
  /** Called for each change; by default, the form has the chosen ones. */
  readonly onChoose?: (roles: readonly string[]) => void;
}

/** A box for each role of the schema, of the name `roles`. */
export function RoleChoice({ chosen, onChoose }: RoleChoiceProps): JSX.Element {
  return (
    <fieldset class="choices">
      <legend>{wording.roles}</legend>
      {(schema.value?.roles ?? []).map(({ name }) => (
        <label key={name} class="check">
          <input
            name="roles"
            type="checkbox"
            value={name}
            {...(onChoose === undefined
              ? { defaultChecked: chosen.includes(name) }
              : { checked: chosen.includes(name), onChange: () => onChoose(toggled(chosen, name)) })}
          />{' '}
          {name}
        </label>
      ))}
    </fieldset>
  );
}

const toggled = (chosen: readonly string[], name: string): readonly string[] =>
  chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name];
