import { object } from '../../describe/operation.ts';
import { route } from '../define-route.ts';

export const jwks = route({
  method: 'GET',
  path: '/.well-known/jwks.json',
  door: 'public',
  id: 'jwks',
  summary: 'Get the public keys that verify access tokens',
  answers: {
    200: {
      description: 'A JWK set (RFC 7517).',
      shape: () => object({ keys: { type: 'array', items: { type: 'object' } } }),
    },
  },
  problems: [],
  async handle(ctx, app) {
    const keys = await app.auth.tokens.jwks();
    ctx.set('Cache-Control', 'public, max-age=60');
    ctx.body = keys;
  },
});
