/** A code or a password in the body of a route, which proves that the user is present. Not a route. */
import { z } from 'zod';
import type { FactorProof } from '../../../auth/auth.ts';
import { Problem } from '../../../problem.ts';
import { jsonBody, withExample } from '../../json-body.ts';
import { password } from '../fields.ts';

export const proofCode = z
  .string('expected string')
  .min(1, 'expected a code')
  .max(64, 'expected a code')
  .meta({ description: 'Six digits of the authenticator, or a recovery code.' });

export const proofBody = withExample(jsonBody({ code: proofCode.optional(), password: password.optional() }), {
  password: 'lovelace and babbage',
});

/** Throws `validation_failed` unless exactly one is given. */
export function proofOf(body: {
  readonly code?: string | undefined;
  readonly password?: string | undefined;
}): FactorProof {
  if (body.code !== undefined && body.password === undefined) return { code: body.code };
  if (body.password !== undefined && body.code === undefined) return { password: body.password };
  const detail = 'expected either `code` or `password`';
  throw new Problem('validation_failed', detail, { errors: [{ pointer: '', code: 'required', detail }] });
}
