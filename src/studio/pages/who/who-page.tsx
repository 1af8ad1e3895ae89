/** Roles × actions for each collection: yes, no, or depends, with the conditions that are left. */
import type { JSX } from 'preact';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { schema } from '../../app/session-state.ts';
import { callerAskedAbout } from '../../app/viewed-caller.ts';
import { callerName } from '../../data/caller-names.ts';
import type { ServedCollection, ServedSchema } from '../../data/schema-answer.ts';
import { type PolicyTools, usePolicyTools } from '../../editor/load-editor.ts';
import { wording } from '../../en.ts';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { RULE_ACTIONS } from '../policies/rule-sets.ts';
import { CallerAccess, RecordAccess } from './asked-access.tsx';
import { askedRoles, type RoleAccess, roleAccess } from './role-access.ts';

export function WhoPage(): JSX.Element {
  const served = schema.value!;
  const tools = usePolicyTools();
  const { query } = address.value;
  const [only, user, record] = [query.get('collection') ?? '', callerAskedAbout('user'), query.get('record') ?? ''];
  const isOfOne = shownOnly(served, only);
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
        <AskedText name="user" label={wording.caller} hint={wording.addCallerHint} text={user} isOpen={isOfOne} />
        <AskedText name="record" label={wording.recordId} hint={wording.addRecordHint} text={record} isOpen={isOfOne} />
      </div>
      {isOfOne && record !== '' && (
        <RecordAccess key={`${only} ${record} ${user}`} {...{ record, collection: only, caller: user }} />
      )}
      {tools === undefined && <p class="loading">{wording.loading}</p>}
      {tools !== undefined &&
        shown.map((collection) => (
          <AccessTable
            key={collection.name}
            {...{ tools, served, collection }}
            user={collection.name === only ? user : ''}
          />
        ))}
    </main>
  );
}

const shownOnly = ({ collections }: ServedSchema, only: string): boolean =>
  collections.some(({ name }) => name === only);

interface AskedTextProps {
  /** In the address. */
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly text: string;
  readonly isOpen: boolean;
}

function AskedText({ name, label, hint, text, isOpen }: AskedTextProps): JSX.Element {
  return (
    <label>
      {label}
      <input
        aria-keyshortcuts={name === 'record' ? 'b' : '/'}
        key={text}
        name={name}
        placeholder={hint}
        defaultValue={text}
        disabled={!isOpen}
        onChange={(event) => changeQuery({ [name]: event.currentTarget.value.trim() })}
      />
    </label>
  );
}

interface AccessTableProps {
  readonly tools: PolicyTools;
  readonly served: ServedSchema;
  readonly collection: ServedCollection;
  /** Empty: the roles alone. */
  readonly user: string;
}

function AccessTable({ tools, served, collection, user }: AccessTableProps): JSX.Element {
  return (
    <section>
      <h2>
        <a href={pathTo('policies', collection.name)}>{collection.name}</a>
      </h2>
      <ScrollTable label={collection.name} class="who" titles={[wording.role, ...RULE_ACTIONS]}>
        {user !== '' && (
          <tr key={`user ${user}`}>
            <th scope="row">{callerName(user)}</th>
            <CallerAccess key={`${collection.name} ${user}`} caller={user} collection={collection.name}>
              {(access) => <AccessWords {...access} />}
            </CallerAccess>
          </tr>
        )}
        {askedRoles(served).map((role) => (
          <tr key={role.name}>
            <th scope="row">{role.name}</th>
            {RULE_ACTIONS.map((action) => (
              <td key={action}>
                <AccessWords {...roleAccess(tools, role, { served, collection, action })} />
              </td>
            ))}
          </tr>
        ))}
      </ScrollTable>
    </section>
  );
}

const VERDICT_NAMES = { allow: 'true', deny: 'false', depends: 'depends' } as const;

function AccessWords({ verdict, conditions }: RoleAccess): JSX.Element {
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
