import type { Route } from '../../http/route.ts';

export const jwks: Route = {
  method: 'GET',
  path: '/.well-known/jwks.json',
  door: 'public',
  summary: 'The public keys that verify access tokens (RFC 7517)',
  body: 'none',
  async handle(ctx, app) {
    const keys = await app.auth.jwks();
    ctx.set('Cache-Control', 'public, max-age=60');
    ctx.body = keys;
  },
};
