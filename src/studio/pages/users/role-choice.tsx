import type { JSX } from 'preact';
import { schema } from '../../app/session-state.ts';
import { wording } from '../../wording.ts';

/** A box for each role of the schema, of the name `roles`. */
export function RoleChoice({ chosen }: { readonly chosen: readonly string[] }): JSX.Element {
  return (
    <fieldset class="choices">
      <legend>{wording.roles}</legend>
      {(schema.value?.roles ?? []).map(({ name }) => (
        <label key={name} class="check">
          <input name="roles" type="checkbox" value={name} defaultChecked={chosen.includes(name)} /> {name}
        </label>
      ))}
    </fieldset>
  );
}
