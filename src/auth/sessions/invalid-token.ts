import { Problem } from '../../problem.ts';

/** The one answer to every access token that is not accepted. */
export const invalidToken = (): Problem =>
  new Problem('invalid_token', 'the access token is not valid or has expired', {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
