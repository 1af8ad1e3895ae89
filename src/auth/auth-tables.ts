/**
 * The tables of the auth room. Their names cannot be collections; they are created after the
 * collections, because they reference `users`, and are only ever added to. No secret is stored:
 * passwords as argon2id, tokens as SHA-256 of 256 random bits. The one exception is the private
 * signing keys, which every node needs: key-wrapping.ts.
 */
import type { StoreError } from '../database/contract.ts';
import { raw, type Sql } from '../sql.ts';

/** Each user has a row. Without a hash the user has no password, and signs in through a provider. */
const ACCOUNTS = `CREATE TABLE IF NOT EXISTS "_auth_accounts" (
  user_id uuid PRIMARY KEY REFERENCES "users" (id) ON DELETE CASCADE,
  password_hash text,
  password_changed_at timestamptz
)`;

/**
 * `unclaimed`: the address was verified by a token alone, outside of a session of the account. Its reader need not be
 * the person who made the account.
 */
const CLAIMS_OF_ACCOUNTS = `ALTER TABLE "_auth_accounts"
  ADD COLUMN IF NOT EXISTS unclaimed boolean NOT NULL DEFAULT false`;

/**
 * `principal` is the user, or the session itself where a guest has it (`kind`); without one, the version before
 * made it for its user. `generation` counts refreshes: tokens of this generation are live, and `spent_hash` is the token
 * that started it. A session that ended is deleted.
 */
const SESSIONS = `CREATE TABLE IF NOT EXISTS "_auth_sessions" (
  id uuid PRIMARY KEY,
  user_id uuid REFERENCES "users" (id) ON DELETE CASCADE,
  cookie_hash text NOT NULL,
  generation int8 NOT NULL DEFAULT 0,
  spent_hash text,
  rotated_at timestamptz,
  created_at timestamptz NOT NULL,
  last_used_at timestamptz NOT NULL,
  method text NOT NULL,
  user_agent text,
  ip text,
  kind text NOT NULL DEFAULT 'user',
  principal uuid
)`;

/** The version before had sessions of users only. */
const SESSIONS_OF_GUESTS = `ALTER TABLE "_auth_sessions"
  ADD COLUMN IF NOT EXISTS kind text NOT NULL DEFAULT 'user',
  ADD COLUMN IF NOT EXISTS principal uuid,
  ALTER COLUMN user_id DROP NOT NULL`;

/** The session that a user had as a guest, which ended with the sign-in. */
const FORMER_GUESTS = `CREATE TABLE IF NOT EXISTS "_auth_former_guests" (
  user_id uuid PRIMARY KEY REFERENCES "users" (id) ON DELETE CASCADE,
  guest uuid NOT NULL,
  ended_at timestamptz NOT NULL
)`;

/** Without `signed_in_at`, the session's start is the last time that its user proved who they are. */
const SIGN_INS_OF_SESSIONS = `ALTER TABLE "_auth_sessions"
  ADD COLUMN IF NOT EXISTS second_factor boolean NOT NULL DEFAULT false,
  ADD COLUMN IF NOT EXISTS signed_in_at timestamptz`;

/** Keys of the service, by name. A value may be wrapped. */
const SECRETS = `CREATE TABLE IF NOT EXISTS "_auth_secrets" (
  name text PRIMARY KEY,
  value text NOT NULL
)`;

/** `secret` is wrapped. It counts once it is confirmed; `last_step` is the last one whose code was spent. */
const TOTP = `CREATE TABLE IF NOT EXISTS "_auth_totp" (
  user_id uuid PRIMARY KEY REFERENCES "users" (id) ON DELETE CASCADE,
  secret text NOT NULL,
  created_at timestamptz NOT NULL,
  confirmed_at timestamptz,
  last_step int8 NOT NULL DEFAULT 0
)`;

/** As HMAC. A code is deleted by its use. */
const RECOVERY_CODES = `CREATE TABLE IF NOT EXISTS "_auth_recovery_codes" (
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  hash text NOT NULL,
  PRIMARY KEY (user_id, hash)
)`;

/** A sign-in that waits for the second factor. `method` is that of the first step. */
const CHALLENGES = `CREATE TABLE IF NOT EXISTS "_auth_challenges" (
  hash text PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  method text NOT NULL,
  guest_session uuid,
  tries int8 NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL
)`;

/** `credential_id` and `public_key` in base64url. */
const PASSKEYS = `CREATE TABLE IF NOT EXISTS "_auth_passkeys" (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  name text NOT NULL,
  credential_id text NOT NULL UNIQUE,
  public_key text NOT NULL,
  counter int8 NOT NULL,
  created_at timestamptz NOT NULL,
  last_used_at timestamptz
)`;

/** Deleted by its use. Without a user, it is one of a login. */
const PASSKEY_CHALLENGES = `CREATE TABLE IF NOT EXISTS "_auth_passkey_challenges" (
  hash text PRIMARY KEY,
  user_id uuid REFERENCES "users" (id) ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
)`;

/** Spent tokens are kept until their session is deleted, so that their reuse is recognised. */
const REFRESH_TOKENS = `CREATE TABLE IF NOT EXISTS "_auth_refresh_tokens" (
  hash text PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES "_auth_sessions" (id) ON DELETE CASCADE,
  generation int8 NOT NULL,
  cookie_pad text NOT NULL
)`;

/**
 * A key signs from `active_at` until a later key does, and verifies until `retired_at`.
 * `private_jwk` may be wrapped.
 */
const SIGNING_KEYS = `CREATE TABLE IF NOT EXISTS "_auth_keys" (
  kid text PRIMARY KEY,
  private_jwk text NOT NULL,
  created_at timestamptz NOT NULL,
  active_at timestamptz NOT NULL,
  retired_at timestamptz
)`;

/**
 * A key of a program. `bounds`: a JSON object of its limit, addresses and origins. Without a maker, the command
 * line made it. The secret before a rotation is good until `former_until`.
 */
const API_KEYS = `CREATE TABLE IF NOT EXISTS "_auth_api_keys" (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  roles text[] NOT NULL,
  publishable boolean NOT NULL,
  bounds text NOT NULL,
  secret_hash text NOT NULL,
  former_hash text,
  former_until timestamptz,
  expires_at timestamptz,
  created_at timestamptz NOT NULL,
  created_by uuid REFERENCES "users" (id) ON DELETE CASCADE,
  last_used_at timestamptz
)`;

/**
 * The secrets before the former one that are good still, as a JSON list of hashes, each until a time of its own. The
 * version before kept one former secret.
 */
const EARLIER_SECRETS = `ALTER TABLE "_auth_api_keys"
  ADD COLUMN IF NOT EXISTS earlier_secrets text NOT NULL DEFAULT '[]'`;

const IDENTITIES = `CREATE TABLE IF NOT EXISTS "_auth_identities" (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (issuer, subject)
)`;

/**
 * A started OAuth flow. `hash` is that of the cookie that binds it to the browser. Deleted by its
 * first use.
 */
const FLOWS = `CREATE TABLE IF NOT EXISTS "_auth_flows" (
  hash text PRIMARY KEY,
  provider text NOT NULL,
  grant_session text NOT NULL,
  redirect_to text,
  expires_at timestamptz NOT NULL
)`;

/** A native app exchanges it, by the verifier of `challenge`. Deleted by its use. */
const OAUTH_CODES = `CREATE TABLE IF NOT EXISTS "_auth_oauth_codes" (
  hash text PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  challenge text NOT NULL,
  expires_at timestamptz NOT NULL
)`;

/** The token proves `email`, and is void once the user's address is another. Deleted by its use. */
const EMAIL_TOKENS = `CREATE TABLE IF NOT EXISTS "_auth_email_tokens" (
  hash text PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  purpose text NOT NULL,
  email text NOT NULL,
  expires_at timestamptz NOT NULL
)`;

/** The address that a change of address gives. The version before changed none. */
const NEW_EMAILS = 'ALTER TABLE "_auth_email_tokens" ADD COLUMN IF NOT EXISTS new_email text';

/** The live code of an account, and the token of the link beside it; a use of either deletes the row. */
const OTP = `CREATE TABLE IF NOT EXISTS "_auth_otp" (
  user_id uuid PRIMARY KEY REFERENCES "users" (id) ON DELETE CASCADE,
  email text NOT NULL,
  code_hmac text NOT NULL,
  token_hash text NOT NULL UNIQUE,
  tries int8 NOT NULL,
  expires_at timestamptz NOT NULL
)`;

/**
 * An invitation, an address at a time. `data`: a JSON object of values of the user. `hash`: of the token in the mail
 * that was sent last.
 */
const INVITES = `CREATE TABLE IF NOT EXISTS "_auth_invites" (
  id uuid PRIMARY KEY,
  email text NOT NULL UNIQUE,
  roles text[] NOT NULL,
  data text NOT NULL,
  hash text UNIQUE,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  created_by uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE
)`;

/**
 * A request for a mail. `detail`: a JSON object of facts without a secret. A sender holds the row until `due_at`;
 * `error` is the code of the last failure. Deleted when the mail is sent.
 */
const OUTBOX = `CREATE TABLE IF NOT EXISTS "_auth_outbox" (
  id uuid PRIMARY KEY,
  kind text NOT NULL,
  address text NOT NULL,
  language text,
  detail text NOT NULL,
  created_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,
  attempts int8 NOT NULL,
  error text
)`;

/** Without foreign keys: events outlive their user. */
const AUDIT = `CREATE TABLE IF NOT EXISTS "_auth_audit" (
  id uuid PRIMARY KEY,
  at timestamptz NOT NULL,
  event text NOT NULL,
  user_id uuid,
  actor_id uuid,
  session_id uuid,
  ip text,
  user_agent text,
  request_id text,
  detail text
)`;

/** The roles of each user as the audit trail recorded them last. */
const ROLE_TRAIL = `CREATE TABLE IF NOT EXISTS "_auth_role_trail" (
  user_id uuid PRIMARY KEY REFERENCES "users" (id) ON DELETE CASCADE,
  roles text[] NOT NULL
)`;

/** The table has the columns that rate-limiter-flexible expects. */
const LIMITS_TABLE = `CREATE TABLE IF NOT EXISTS "_auth_limits" (
  key varchar(255) PRIMARY KEY,
  points int8 NOT NULL DEFAULT 0,
  expire int8
)`;

const AUTH_INDEXES: readonly string[] = [
  'CREATE UNIQUE INDEX IF NOT EXISTS "_auth_sessions_cookie" ON "_auth_sessions" (cookie_hash)',
  'CREATE INDEX IF NOT EXISTS "_auth_sessions_user" ON "_auth_sessions" (user_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_sessions_created" ON "_auth_sessions" (created_at)',
  'CREATE INDEX IF NOT EXISTS "_auth_refresh_tokens_session" ON "_auth_refresh_tokens" (session_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_api_keys_maker" ON "_auth_api_keys" (created_by)',
  'CREATE INDEX IF NOT EXISTS "_auth_identities_user" ON "_auth_identities" (user_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_passkeys_user" ON "_auth_passkeys" (user_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_passkey_challenges_user" ON "_auth_passkey_challenges" (user_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_passkey_challenges_expiry" ON "_auth_passkey_challenges" (expires_at)',
  'CREATE INDEX IF NOT EXISTS "_auth_challenges_user" ON "_auth_challenges" (user_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_challenges_expiry" ON "_auth_challenges" (expires_at)',
  'CREATE INDEX IF NOT EXISTS "_auth_oauth_codes_user" ON "_auth_oauth_codes" (user_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_oauth_codes_expiry" ON "_auth_oauth_codes" (expires_at)',
  'CREATE INDEX IF NOT EXISTS "_auth_flows_expiry" ON "_auth_flows" (expires_at)',
  'CREATE INDEX IF NOT EXISTS "_auth_email_tokens_user" ON "_auth_email_tokens" (user_id)',
  'CREATE INDEX IF NOT EXISTS "_auth_email_tokens_expiry" ON "_auth_email_tokens" (expires_at)',
  'CREATE INDEX IF NOT EXISTS "_auth_invites_maker" ON "_auth_invites" (created_by)',
  'CREATE INDEX IF NOT EXISTS "_auth_outbox_due" ON "_auth_outbox" (due_at)',
  'CREATE INDEX IF NOT EXISTS "_auth_audit_user" ON "_auth_audit" (user_id, id)',
  // Which addresses an account came from.
  `CREATE INDEX IF NOT EXISTS "_auth_audit_sign_ins" ON "_auth_audit" (user_id, ip, at)
    WHERE event IN ('login', 'oauth_login', 'passkey_login')`,
  'CREATE INDEX IF NOT EXISTS "_auth_limits_expiry" ON "_auth_limits" (expire)',
];

export const authTables: readonly Sql[] = [
  ACCOUNTS,
  CLAIMS_OF_ACCOUNTS,
  SESSIONS,
  SESSIONS_OF_GUESTS,
  SIGN_INS_OF_SESSIONS,
  FORMER_GUESTS,
  SECRETS,
  TOTP,
  RECOVERY_CODES,
  CHALLENGES,
  PASSKEYS,
  PASSKEY_CHALLENGES,
  REFRESH_TOKENS,
  SIGNING_KEYS,
  API_KEYS,
  EARLIER_SECRETS,
  IDENTITIES,
  FLOWS,
  OAUTH_CODES,
  EMAIL_TOKENS,
  NEW_EMAILS,
  OTP,
  INVITES,
  OUTBOX,
  AUDIT,
  ROLE_TRAIL,
  LIMITS_TABLE,
  ...AUTH_INDEXES,
].map(raw);

/** A row would reference a user who was deleted while the request was under way. */
export const isOfDeletedUser = ({ kind, violated }: StoreError): boolean =>
  kind === 'foreign_key' && violated?.constraint.startsWith('_auth_') === true;
