/** Signs the client secret of Apple: a JWT by a private key, in place of a shared secret. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';
import { present } from '../../invariant.ts';
import type { OAuthProvider } from '../../schema/model/model.ts';

/** Apple allows six months; one exchange needs seconds. */
const SECRET_LIFETIME = '5 minutes';

export async function appleSecret(provider: OAuthProvider, issuer: string): Promise<string> {
  return new SignJWT()
    .setProtectedHeader({ alg: 'ES256', kid: present(provider.keyId, 'the id of the key') })
    .setIssuer(present(provider.teamId, 'the team'))
    .setSubject(provider.clientId)
    .setAudience(issuer)
    .setIssuedAt()
    .setExpirationTime(SECRET_LIFETIME)
    .sign(privateKeyOf(provider));
}

/** Throws for a secret that is not such a key. */
export function checkAppleKey(provider: OAuthProvider): void {
  const { name } = provider;
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = privateKeyOf(provider);
    if (asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1') return;
  } catch {
    // The error of a parser could quote the key.
  }
  throw new Error(
    `oauth.${name}: the secret is not a private key of Apple; expected the text of the .p8 file, a P-256 key in PEM`,
  );
}

/** A variable of the environment often has `\n` in place of line breaks. */
const privateKeyOf = ({ clientSecret }: OAuthProvider): KeyObject =>
  createPrivateKey(clientSecret.replaceAll('\\n', '\n'));
