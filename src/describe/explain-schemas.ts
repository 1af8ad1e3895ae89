/** JSON Schemas of a question about a decision, and of its answer. */
import { ACTIONS } from '../policy/types.ts';
import { closed, type Json, type OperationScope, object, type Shape, TEXT } from './operation.ts';

const ACTION: Json = { type: 'string', enum: ACTIONS };
const BOOL_OR_NULL: Json = { type: ['boolean', 'null'] };
const INT_OR_NULL: Json = { type: ['integer', 'null'] };
const TEXT_OR_NULL: Json = { type: ['string', 'null'] };
const TEXT_LIST: Json = { type: 'array', items: TEXT };
const VALUE: Json = { enum: ['true', 'false', 'unknown', null], description: 'null: no record was asked about.' };
const RESIDUAL: Json = { enum: ['allow', 'deny', 'depends'], description: 'By the request alone.' };

/** The accounts are last: fewer callers may ask about them. */
const firstPlainOf = ({ collections }: OperationScope['schema']): string | undefined =>
  [...collections.values()].toSorted((a, b) => Number(a.kind !== 'plain') - Number(b.kind !== 'plain'))[0]?.name;

export const explainRequest: Shape = ({ define, schema }) =>
  define('ExplainRequest', {
    examples: [{ collection: firstPlainOf(schema), action: 'list' }],
    ...object(
      {
        collection: { type: 'string', enum: [...schema.collections.keys()] },
        action: ACTION,
        as: {
          description:
            'The caller: an email, an id, `guest`, the id of a key, or one who is made up. Default: the asker.',
          anyOf: [
            TEXT,
            closed({ key: TEXT }, { required: ['key'] }),
            { type: 'object', required: ['roles'], properties: { roles: TEXT_LIST } },
          ],
        },
        id: { ...TEXT_OR_NULL, description: 'The record; null: the record that a create without data makes.' },
        data: { type: 'object', description: 'Of a create or an update.' },
        query: {
          type: 'object',
          additionalProperties: { anyOf: [TEXT, TEXT_LIST] },
          description: 'The query string, as policies see it. It filters nothing.',
        },
        filter: { ...TEXT, description: 'Of a list: judged for the record, on what the caller may read.' },
        params: { type: 'object' },
        rules: {
          description:
            'Rules that are not saved, in place of those of the action or of the `member`: an expression, or a list. For the role `admin`.',
          anyOf: [TEXT, { type: 'array', items: closed({ roles: TEXT_LIST, when: TEXT }) }],
        },
        member: { ...TEXT, description: 'The field or belongs_to that `rules` are about.' },
      },
      ['as', 'id', 'data', 'query', 'filter', 'params', 'rules', 'member'],
    ),
  });

const LEAF_SHAPE = {
  text: TEXT,
  offset: { ...INT_OR_NULL, description: 'In `when`, in UTF-16 units; null outside of it.' },
  length: { type: 'integer' },
  value: VALUE,
  left: { description: 'The left side of a comparison, if there is one.' },
  right: {},
  absent: { ...TEXT_OR_NULL, description: 'What was null, if the value is unknown.' },
  element: { ...TEXT_OR_NULL, description: 'The element of a to-many relation.' },
};

/** The parts of an explanation that have names: what a rule, a check and a member came to. */
function explainedParts({ define }: Parameters<Shape>[0]) {
  const written = { enum: ['stored', 'written', null], description: 'Of an update whose rule does not name `@next`.' };
  const leaf = define('ExplainedLeaf', object({ ...LEAF_SHAPE, of: written }));
  const rule = define(
    'ExplainedRule',
    object({
      roles: TEXT_LIST,
      when: TEXT_OR_NULL,
      residual: RESIDUAL,
      value: VALUE,
      withheld: {
        type: 'boolean',
        description: 'The rule may read what the asker may not see; its value, reasons and leaves are left out.',
      },
      reasons: TEXT_LIST,
      leaves: { type: 'array', items: leaf },
    }),
  );
  const member = define(
    'ExplainedMember',
    object({ name: TEXT, when: TEXT, allowed: BOOL_OR_NULL, reasons: TEXT_LIST }),
  );
  const check = define(
    'ExplainedCheck',
    object({
      name: TEXT,
      message: TEXT,
      when: TEXT,
      passes: { ...BOOL_OR_NULL, description: 'null: no record was asked about, or the check is withheld.' },
      leaves: { type: 'array', items: leaf },
    }),
  );
  return { rule, member, check };
}

export const explainAnswer: Shape = (definitions) => {
  const { rule, member, check } = explainedParts(definitions);
  const partner = object({ name: TEXT, allowed: { type: 'boolean' } });
  const filter = object({ value: VALUE, leaves: { type: 'array', items: object(LEAF_SHAPE) } });
  return definitions.define(
    'Explanation',
    object({
      allowed: { ...BOOL_OR_NULL, description: 'null: it depends on the record, or on what is withheld.' },
      status: { ...INT_OR_NULL, description: 'Of the response; null as `allowed` is.' },
      decided_by: { ...INT_OR_NULL, description: 'The index of the rule that allows.' },
      residual: RESIDUAL,
      beyond_limit: {
        type: 'boolean',
        description: 'The limit of the key leaves the action out, so no rule is asked.',
      },
      rules: { type: 'array', items: rule },
      members: { type: 'array', items: member },
      checks: { type: 'array', items: check, description: 'Of a create or an update, after the rules.' },
      partners: {
        type: 'array',
        items: partner,
        description: 'The has_one relations that a write sets: whether the rules of the other record let it move.',
      },
      sql: TEXT_OR_NULL,
      params: { type: 'array' },
      plan: TEXT_LIST,
      missing: { ...TEXT_LIST, description: 'The values that a create without data lacks.' },
      filter: { anyOf: [filter, { type: 'null' }] },
    }),
  );
};
