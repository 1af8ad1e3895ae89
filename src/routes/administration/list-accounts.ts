import { ID_SCHEMA, type OperationParameter, object, type Shape, TEXT } from '../../describe/operation.ts';
import { parseString, parseUuid } from '../../policy/values.ts';
import { route } from '../define-route.ts';
import { intParameter, limitParameter, parametersOf } from '../query-parameters.ts';

const [DEFAULT_LIMIT, MAX_LIMIT] = [20, 100];

const account: Shape = (scope) =>
  scope.define(
    'AuthAccount',
    object({
      id: ID_SCHEMA,
      email: TEXT,
      email_verified: { type: 'boolean' },
      roles: { type: 'array', items: TEXT, description: 'As assigned, without included ones.' },
      disabled: { type: 'boolean', description: 'The user cannot sign in.' },
      second_factor: { type: 'boolean', description: 'The user has a second factor.' },
    }),
  );

const ACCOUNT_PARAMETERS: readonly OperationParameter[] = [
  { name: 'email', in: 'query', description: 'Only addresses that begin with it.', schema: TEXT },
  { name: 'user', in: 'query', description: 'Only this user, by id.', schema: ID_SCHEMA },
  { name: 'after', in: 'query', description: 'Only addresses after this one.', schema: TEXT },
  limitParameter('The number of users.', { most: MAX_LIMIT, otherwise: DEFAULT_LIMIT }),
];

export const listAccounts = route({
  method: 'GET',
  path: '/api/auth/users',
  door: 'admin',
  id: 'list_accounts',
  summary: 'List accounts, also those that are disabled',
  description: 'The facts about signing in. `/api/users` has the other fields, by their rules.',
  parameters: ACCOUNT_PARAMETERS,
  answers: {
    200: {
      description: 'By their addresses.',
      shape: (scope) => object({ data: { type: 'array', items: account(scope) } }),
    },
  },
  problems: ['invalid_parameter'],
  async handle(ctx, app) {
    const { user: userId, limit = DEFAULT_LIMIT, ...choice } = parametersOf(ctx, ACCOUNT_FILTERS);
    const data = await app.auth.admin.accounts({ userId, limit, ...choice });
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data };
  },
});

const ACCOUNT_FILTERS = {
  email: { read: parseString, expected: 'the beginning of an address' },
  user: { read: parseUuid, expected: 'the id of a user' },
  after: { read: parseString, expected: 'an address' },
  limit: intParameter(MAX_LIMIT),
};
