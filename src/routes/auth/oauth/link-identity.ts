import { z } from 'zod';
import { object, TEXT } from '../../../describe/operation.ts';
import { callerOf } from '../../../http/gate.ts';
import { clientOf } from '../../../http/request.ts';
import { route } from '../../define-route.ts';
import { jsonBody } from '../../json-body.ts';
import { setFlowCookie } from '../tokens-answer.ts';

export const linkIdentity = route({
  method: 'POST',
  path: '/api/auth/identities/:provider',
  door: 'user',
  ownSite: true,
  id: 'link_identity',
  summary: 'Link your account with an identity at a provider',
  description:
    'Send the browser to `location`, with the cookie of the answer. It returns to `redirect_to`, `/` by default, with `?error=<code>` ' +
    'if the identity could not be linked. A session must have the second factor of its user, where there is one.',
  body: jsonBody({ redirect_to: z.string('expected string').max(2_048).optional() }),
  answers: {
    200: {
      description: 'The address of the provider.',
      shape: () => object({ location: TEXT }),
      headers: ['Set-Cookie'],
    },
  },
  problems: ['invalid_parameter', 'not_found', 'rate_limited'],
  async handle(ctx, app, { redirect_to: redirectTo = '/' }) {
    const provider = ctx.params.provider ?? '';
    const started = await app.auth.oauth.startLink(callerOf(ctx), { provider, redirectTo, client: clientOf(ctx) });
    setFlowCookie(ctx, app, started);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { location: started.location };
  },
});
