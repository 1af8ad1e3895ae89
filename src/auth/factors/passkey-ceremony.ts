/** The ceremonies of WebAuthn: options for a browser, and the verification of its responses. Loaded at the first use. */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
  WebAuthnCredential,
} from '@simplewebauthn/server';
import { loadOptional } from '../../optional-package.ts';

export type RegistrationResponse = RegistrationResponseJSON;
export type AuthenticationResponse = AuthenticationResponseJSON;
export type CreationOptions = PublicKeyCredentialCreationOptionsJSON;
export type RequestOptions = PublicKeyCredentialRequestOptionsJSON;

/** The relying party: the site that passkeys belong to. */
export interface RelyingParty {
  /** A domain. */
  readonly id: string;
  readonly name: string;
  /** The pages that may use them. */
  readonly origins: readonly string[];
}

/** A credential as it is stored. */
export interface StoredCredential {
  /** In base64url, as the key below. */
  readonly credentialId: string;
  readonly publicKey: string;
}

/** Takes a challenge that this service gave out, once. */
export type TakeChallenge = (challenge: string) => Promise<boolean>;

export interface NewCredential extends StoredCredential {
  readonly counter: number;
}

const TIMEOUT_MS = 300_000;
/** In base64url. WebAuthn Level 3, § 7.1: at most 1,023 bytes. */
export const CREDENTIAL_ID = /^[A-Za-z0-9_-]{1,1364}$/;

const webauthn = () =>
  loadOptional({
    packages: ['@simplewebauthn/server'],
    reason: 'a passkey is used',
    load: () => import('@simplewebauthn/server'),
  });

export interface PasskeyOwner {
  readonly id: string;
  readonly email: string;
  /** The ids of the passkeys that the user has. */
  readonly known: readonly string[];
}

export async function creationOptions(
  party: RelyingParty,
  { id, email, known }: PasskeyOwner,
): Promise<CreationOptions> {
  const { generateRegistrationOptions } = await webauthn();
  return generateRegistrationOptions({
    rpID: party.id,
    rpName: party.name,
    userID: new TextEncoder().encode(id),
    userName: email,
    timeout: TIMEOUT_MS,
    excludeCredentials: known.map((each) => ({ id: each })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
}

/** Without the ids of credentials: the browser offers those of the site. */
export async function requestOptions(party: RelyingParty): Promise<RequestOptions> {
  const { generateAuthenticationOptions } = await webauthn();
  return generateAuthenticationOptions({ rpID: party.id, userVerification: 'required', timeout: TIMEOUT_MS });
}

/** Undefined: the response is not valid. */
export async function verifiedCredential(
  party: RelyingParty,
  response: RegistrationResponse,
  take: TakeChallenge,
): Promise<NewCredential | undefined> {
  const { verifyRegistrationResponse } = await webauthn();
  const found = await orUndefined(take, (expectedChallenge) =>
    verifyRegistrationResponse({ response, expectedChallenge, ...expectedOf(party) }),
  );
  if (found?.verified !== true) return undefined;
  const { id, publicKey, counter } = found.registrationInfo.credential;
  if (!CREDENTIAL_ID.test(id)) return undefined;
  return { credentialId: id, publicKey: Buffer.from(publicKey).toString('base64url'), counter };
}

/** Returns the counter of the authenticator; undefined: the response is not valid. */
export async function verifiedCounter(
  party: RelyingParty,
  { credentialId, publicKey }: StoredCredential,
  response: AuthenticationResponse,
  take: TakeChallenge,
): Promise<number | undefined> {
  const { verifyAuthenticationResponse } = await webauthn();
  // The statement that stores the counter compares it.
  const credential: WebAuthnCredential = {
    id: credentialId,
    publicKey: new Uint8Array(Buffer.from(publicKey, 'base64url')),
    counter: 0,
  };
  const found = await orUndefined(take, (expectedChallenge) =>
    verifyAuthenticationResponse({ response, expectedChallenge, credential, ...expectedOf(party) }),
  );
  return found?.verified === true ? found.authenticationInfo.newCounter : undefined;
}

const expectedOf = ({ id, origins }: RelyingParty) => ({
  expectedRPID: id,
  expectedOrigin: [...origins],
  requireUserVerification: true,
});

/** The library throws for every response that is not valid. An error of the database is rethrown. */
async function orUndefined<T>(
  take: TakeChallenge,
  verify: (take: TakeChallenge) => Promise<T>,
): Promise<T | undefined> {
  let failure: unknown;
  // The challenge is a member of a document from the browser, which may be of any type.
  const taking = async (challenge: unknown): Promise<boolean> => {
    try {
      return typeof challenge === 'string' && (await take(challenge));
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  try {
    return await verify(taking);
  } catch {
    if (failure !== undefined) throw failure;
    return undefined;
  }
}
