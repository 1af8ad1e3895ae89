/** Time-based one-time passwords (RFC 6238) as every authenticator app makes them: SHA-1, 6 digits, 30 seconds. */
import { Secret, TOTP } from 'otpauth';
import { renderSVG } from 'uqr';

const TOTP_SETTINGS = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
/** RFC 4226, 4: 160 bits. */
const TOTP_SECRET_BYTES = 20;
/** Steps that the clock of an authenticator may be behind or ahead. */
const WINDOW = 1;
const SIX_DIGITS = /^[0-9]{6}$/;

/** In base32. */
export const newTotpSecret = (): string => new Secret({ size: TOTP_SECRET_BYTES }).base32;

export interface TotpLabel {
  /** The service. */
  readonly issuer: string;
  readonly email: string;
}

/** The address that an authenticator app reads, and its QR code as an SVG. */
export function totpUri(secret: string, { issuer, email }: TotpLabel): { readonly uri: string; readonly qr: string } {
  const uri = new TOTP({ ...TOTP_SETTINGS, issuer, label: email, secret: Secret.fromBase32(secret) }).toString();
  return { uri, qr: renderSVG(uri) };
}

/** The step of the code, counted from the epoch; undefined: the code is wrong at this time. */
export function totpStep(secret: string, code: string, now = Date.now()): number | undefined {
  if (!SIX_DIGITS.test(code)) return undefined;
  const totp = new TOTP({ ...TOTP_SETTINGS, secret: Secret.fromBase32(secret) });
  const delta = totp.validate({ token: code, timestamp: now, window: WINDOW });
  return delta === null ? undefined : Math.floor(now / 1000 / TOTP_SETTINGS.period) + delta;
}
