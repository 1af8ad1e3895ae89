/** Roles × actions for each collection: yes, no, or depends, with the conditions that are left. */
import type { JSX } from 'preact';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { schema } from '../../app/session-state.ts';
import type { ServedCollection, ServedSchema } from '../../data/schema-answer.ts';
import { type PolicyTools, usePolicyTools } from '../../editor/load-editor.ts';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { wording } from '../../wording.ts';
import { RULE_ACTIONS, type RuleAction } from '../policies/rule-sets.ts';
import { type AskedRole, accessOf, askedRoles } from './role-access.ts';

export function WhoPage(): JSX.Element {
  const served = schema.value!;
  const tools = usePolicyTools();
  const only = address.value.query.get('collection') ?? '';
  const shown = served.collections.filter(({ name }) => only === '' || name === only);
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.who}</h1>
      <p class="hint">{wording.whoHint}</p>
      <div class="question">
        <label>
          {wording.collection}
          <select
            name="collection"
            value={only}
            onChange={(event) => changeQuery({ collection: event.currentTarget.value })}
          >
            <option value="">{wording.everyCollection}</option>
            {served.collections.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      {tools === undefined && <p class="loading">{wording.loading}</p>}
      {tools !== undefined &&
        shown.map((collection) => (
          <AccessTable key={collection.name} tools={tools} served={served} collection={collection} />
        ))}
    </main>
  );
}

interface AccessTableProps {
  readonly tools: PolicyTools;
  readonly served: ServedSchema;
  readonly collection: ServedCollection;
}

function AccessTable({ tools, served, collection }: AccessTableProps): JSX.Element {
  return (
    <section>
      <h2>
        <a href={pathTo('policies', collection.name)}>{collection.name}</a>
      </h2>
      <ScrollTable label={collection.name} class="who" titles={[wording.role, ...RULE_ACTIONS]}>
        {askedRoles(served).map((role) => (
          <tr key={role.name}>
            <th scope="row">{role.name}</th>
            {RULE_ACTIONS.map((action) => (
              <td key={action}>
                <AccessCell {...{ tools, served, collection, role, action }} />
              </td>
            ))}
          </tr>
        ))}
      </ScrollTable>
    </section>
  );
}

interface AccessCellProps extends AccessTableProps {
  readonly role: AskedRole;
  readonly action: RuleAction;
}

const VERDICT_NAMES = { allow: 'true', deny: 'false', depends: 'depends' } as const;

function AccessCell({ tools, served, collection, role, action }: AccessCellProps): JSX.Element {
  const { verdict, conditions } = accessOf(tools, role, { served, collection, action });
  return (
    <>
      <span class={`value ${VERDICT_NAMES[verdict]}`}>{wording.accessWords[verdict]}</span>
      {conditions.map((condition) => (
        <p key={condition}>
          <code>{condition}</code>
        </p>
      ))}
    </>
  );
}
