/** The bodies and answers of passkeys. Not a route. */
import { z } from 'zod';
import type { AuthenticationResponse, RegistrationResponse } from '../../../auth/auth.ts';
import { type Json, object, type RouteAnswer, type Shape, TEXT } from '../../../describe/operation.ts';

const DATE_TIME: Json = { type: 'string', format: 'date-time' };

export const passkey: Shape = (scope) =>
  scope.define(
    'Passkey',
    object({ id: TEXT, name: TEXT, created_at: DATE_TIME, last_used_at: { anyOf: [DATE_TIME, { type: 'null' }] } }),
  );

export const passkeyAnswer = (description: string): RouteAnswer => ({
  description,
  shape: (scope) => object({ data: passkey(scope) }),
});

export const webauthnOptions: RouteAnswer = {
  description: 'Options in the JSON form of WebAuthn, good for five minutes.',
  shape: () => ({ type: 'object' }),
};

export const passkeyName = z
  .string('expected string')
  .trim()
  .min(1, 'expected 1 to 100 characters')
  .max(100, 'expected 1 to 100 characters');

const CREDENTIAL = z
  .looseObject(
    { id: z.string('expected string'), response: z.looseObject({}, 'expected an object') },
    'expected an object',
  )
  .meta({ description: 'The credential of the browser, as its `toJSON()` makes it.' });

/** The ceremony looks at the rest. */
export const registrationResponse = CREDENTIAL as unknown as z.ZodType<RegistrationResponse>;
export const authenticationResponse = CREDENTIAL as unknown as z.ZodType<AuthenticationResponse>;
