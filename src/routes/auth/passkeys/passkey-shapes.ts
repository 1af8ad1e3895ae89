/** The bodies and answers of passkeys. Not a route. */
import { z } from 'zod';
import type { AuthenticationResponse, RegistrationResponse } from '../../../auth/auth.ts';
import { CREDENTIAL_NAME_LENGTH, credentialNameError } from '../../../auth/credential-name.ts';
import { CREDENTIAL_ID } from '../../../auth/factors/passkey-ceremony.ts';
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
  .refine((name) => credentialNameError(name) === undefined, {
    error: ({ input }) => credentialNameError(String(input)),
  })
  .meta(CREDENTIAL_NAME_LENGTH);

/** `response`: the members that the service reads before the ceremony looks at all of them. */
const credential = (response: z.ZodRawShape) =>
  z
    .looseObject(
      {
        id: z.string('expected string').regex(CREDENTIAL_ID, 'expected the id of a credential, in base64url'),
        response: z.looseObject(response, 'expected an object'),
      },
      'expected an object',
    )
    .meta({ description: 'The credential of the browser, as its `toJSON()` makes it.' });

/** Some helpers of browsers send null for a handle that is missing. */
const userHandle = z
  .string('expected string or null')
  .nullish()
  .transform((handle) => handle ?? undefined);

export const registrationResponse = credential({}) as unknown as z.ZodType<RegistrationResponse>;
export const authenticationResponse = credential({ userHandle }) as unknown as z.ZodType<AuthenticationResponse>;
