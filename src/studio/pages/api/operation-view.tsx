/** The reference of one operation. */
import type { JSX } from 'preact';
import { wording } from '../../en.ts';
import { ProseText } from '../../parts/prose-text.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { type ApiOperation, type ApiReference, type ApiSchema, typeWordsOf } from './operation-list.ts';

interface OperationViewProps {
  readonly operation: ApiOperation;
  readonly reference: ApiReference;
}

export function OperationView({ operation, reference }: OperationViewProps): JSX.Element {
  const { method, path, summary = '', description, security = [], parameters = [], requestBody } = operation;
  const { schemaOf } = reference;
  const [type, { schema = {} } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const body = schemaOf(schema);
  const data = schemaOf(body.properties?.data ?? {});
  return (
    <>
      <h2>
        <code>{`${method} ${path}`}</code>
      </h2>
      <p>
        <ProseText text={summary} />
      </p>
      {description !== undefined && (
        <p>
          <ProseText text={description} />
        </p>
      )}
      <p class="hint">{security.length === 0 ? wording.openToAll : wording.needsSession}</p>
      {parameters.length > 0 && (
        <MemberTable
          title={wording.parameters}
          members={parameters.map(({ name, in: place, required, description: about, schema: of = {} }) => ({
            name: `${name} (${place})`,
            isRequired: required === true,
            schema: { ...of, description: about ?? of.description },
          }))}
        />
      )}
      {type !== undefined && <MemberTable title={`${wording.body} (${type})`} members={membersOf(body)} />}
      {data.properties !== undefined && <MemberTable title="data" members={membersOf(data)} />}
      <Responses operation={operation} reference={reference} />
    </>
  );
}

interface SchemaMember {
  readonly name: string;
  readonly isRequired: boolean;
  readonly schema: ApiSchema;
}

const membersOf = ({ properties = {}, required = [] }: ApiSchema): readonly SchemaMember[] =>
  Object.entries(properties).map(([name, schema]) => ({ name, isRequired: required.includes(name), schema }));

interface MemberTableProps {
  readonly title: string;
  readonly members: readonly SchemaMember[];
}

function MemberTable({ title, members }: MemberTableProps): JSX.Element | null {
  if (members.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ScrollTable label={title} titles={[wording.name, wording.type, wording.detail]}>
        {members.map(({ name, isRequired, schema }) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
              {isRequired && <span class="required"> {wording.required}</span>}
            </th>
            <td>{typeWordsOf(schema)}</td>
            <td>
              <ProseText text={schema.description ?? ''} />
            </td>
          </tr>
        ))}
      </ScrollTable>
    </>
  );
}

/** The successes first; the errors, whose descriptions name their codes, in a fold. */
function Responses({ operation: { responses = {} }, reference }: OperationViewProps): JSX.Element {
  const all = Object.entries(responses).map(([status, response]) => ({ status, ...reference.responseOf(response) }));
  const isError = ({ status }: { readonly status: string }): boolean => !/^[23]/.test(status);
  return (
    <>
      <h3>{wording.responses}</h3>
      <ResponseList responses={all.filter((each) => !isError(each))} />
      <details>
        <summary>{wording.errors}</summary>
        <ResponseList responses={all.filter(isError)} />
      </details>
    </>
  );
}

interface ResponseListProps {
  readonly responses: readonly { readonly status: string; readonly description?: string }[];
}

function ResponseList({ responses }: ResponseListProps): JSX.Element {
  return (
    <ul class="responses">
      {responses.map(({ status, description = '' }) => (
        <li key={status}>
          <code>{status}</code> <ProseText text={description} />
        </li>
      ))}
    </ul>
  );
}
