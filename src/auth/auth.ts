/** The face of the auth room: everything that other rooms may ask of it. */
import type { Database } from '../database/contract.ts';
import type { Schema } from '../schema/model/model.ts';
import { sql } from '../sql.ts';
import { type AccountParts, Accounts } from './accounts/accounts.ts';
import { Administration } from './accounts/administration.ts';
import { EmailChange } from './accounts/email-change.ts';
import { Invitations } from './accounts/invitations.ts';
import { LoginCodes } from './accounts/login-codes.ts';
import { PasswordCheck } from './accounts/password-check.ts';
import { createPasswordPool, type PasswordPool } from './accounts/passwords.ts';
import { Recovery } from './accounts/recovery.ts';
import type { SetupOffer } from './accounts/setup-offer.ts';
import { type UserHooks, userHooks } from './accounts/user-hooks.ts';
import { Users } from './accounts/users.ts';
import { pruneApiKeys } from './api-keys/api-key-rows.ts';
import { ApiKeys } from './api-keys/api-keys.ts';
import { pruneAudit, type RequestClient, recordAudit } from './audit-trail.ts';
import type { Caller } from './caller.ts';
import { CodeCheck } from './factors/code-check.ts';
import { FactorKey } from './factors/factor-key.ts';
import { Passkeys } from './factors/passkeys.ts';
import { SecondFactors } from './factors/second-factors.ts';
import { StepUp } from './factors/step-up.ts';
import { SigningKeys } from './keys/signing-keys.ts';
import { createLimiter } from './limits/limiter.ts';
import { accountMails } from './mail/account-mails.ts';
import { type MailObserver, MailSender } from './mail/mail-sender.ts';
import { MailWriter } from './mail/mail-writer.ts';
import { type Mail, Mailer, mailErrorOf } from './mail/mailer.ts';
import { Outbox } from './mail/outbox.ts';
import { OAuth } from './oauth/oauth.ts';
import { Identities } from './oauth/oauth-identity.ts';
import { AccessTokens } from './sessions/access-tokens.ts';
import { Authenticator } from './sessions/authenticator.ts';
import { pruneFormerGuests } from './sessions/former-guests.ts';
import { Sessions } from './sessions/sessions.ts';

export { FACTOR_STATES, type Issued, type SignedIn } from './accounts/accounts.ts';
export type { Administration, Administrator } from './accounts/administration.ts';
export type { InviteRequest } from './accounts/invitations.ts';
export type { PasswordPool } from './accounts/passwords.ts';
export type { User } from './accounts/users.ts';
export type { ApiKeys, IssuedKey, KeyActor } from './api-keys/api-keys.ts';
export type { KeyRequest } from './api-keys/key-requests.ts';
export type { AuditRow, RequestClient } from './audit-trail.ts';
export type { Caller } from './caller.ts';
export type { AuthenticationResponse, RegistrationResponse } from './factors/passkey-ceremony.ts';
export type { FactorProof } from './factors/second-factors.ts';
export type { MailObserver } from './mail/mail-sender.ts';
export type { Mail } from './mail/mailer.ts';
export type { StartedOAuth } from './oauth/oauth.ts';
export type { RequestCredentials } from './sessions/authenticator.ts';

interface AuthSettings {
  /** Read at each use: with port 0 it is known only once the service listens. */
  readonly baseUrl: string;
  /** False for load tests only. Default: true. */
  readonly rateLimit?: boolean | undefined;
  /** Without an SMTP server, mails are written here. Default: `./data`. */
  readonly data?: string | undefined;
  readonly smtpUrl?: string | undefined;
  /** Default: no-reply@ the host of the base URL. */
  readonly mailFrom?: string | undefined;
  /** 32 bytes that wrap the signing keys in the database. */
  readonly keySecret?: Buffer | undefined;
}

export interface AuthParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly config: AuthSettings;
  /**
   * Warnings for the operator: mails that could not be sent, or that become files. Default: a line
   * like those of the log.
   */
  readonly warn?: ((message: string) => void) | undefined;
  /** Default: argon2id at its full cost. */
  readonly passwords?: PasswordPool | undefined;
  /** Default: the first administrator is not made over HTTP. */
  readonly setup?: SetupOffer | undefined;
  /** Counts mails. */
  readonly mails?: MailObserver | undefined;
  /** Sees each mail that is written to a file. */
  readonly onMail?: ((mail: Mail) => void) | undefined;
}

export interface ExplainedQuestion {
  readonly subject: string | undefined;
  readonly client: RequestClient;
  readonly collection: string;
  readonly action: string;
  readonly record: string | undefined;
  /** Given for a question about several callers. */
  readonly callers?: readonly string[];
}

const FACTOR_KEY_IN_PLAIN =
  'the secrets of second factors are wrapped by a key that lies in the same database; ' +
  'set BYLAW_KEY_SECRET, so that a copy of the database alone reveals none';
const PRUNE_EVERY_MS = 600_000;

function createMailer({
  schema,
  config,
  warn,
  onMail,
}: Pick<AuthParts, 'schema' | 'config' | 'onMail'> & { readonly warn: (message: string) => void }): Mailer {
  const { smtpUrl, data: dataDir = './data' } = config;
  const { from, replyTo } = schema.mail;
  const mailFrom = config.mailFrom ?? from;
  return new Mailer({ smtpUrl, mailFrom, replyTo, dataDir, baseUrl: () => config.baseUrl, warn, onMail });
}

interface AuthMembers extends AccountParts {
  readonly accounts: Accounts;
  readonly mailer: Mailer;
  readonly outbox: Outbox;
  readonly sender: MailSender;
  readonly baseUrl: () => string;
  readonly recovery: Recovery;
  readonly invitations: Invitations;
  readonly loginCodes: LoginCodes;
  readonly emailChange: EmailChange;
  readonly oauth: OAuth;
  readonly admin: Administration;
  readonly apiKeys: ApiKeys;
  readonly secondFactors: SecondFactors;
  readonly stepUp: StepUp;
  readonly passkeys: Passkeys;
}

export class Auth {
  readonly authenticator: Authenticator;
  readonly tokens: AccessTokens;
  readonly accounts: Accounts;
  readonly recovery: Recovery;
  readonly invitations: Invitations;
  readonly loginCodes: LoginCodes;
  readonly emailChange: EmailChange;
  readonly oauth: OAuth;
  readonly admin: Administration;
  readonly apiKeys: ApiKeys;
  readonly outbox: Outbox;
  readonly secondFactors: SecondFactors;
  readonly stepUp: StepUp;
  readonly passkeys: Passkeys;
  /** The destination of mails: `SMTP`, or the folder that they are written into. */
  readonly mailTo: string;
  /** The hooks that the records room calls when records of `users` change. */
  readonly userHooks: UserHooks;
  readonly #members: AuthMembers;
  readonly #pruning: NodeJS.Timeout;

  private constructor(members: AuthMembers) {
    this.#members = members;
    this.authenticator = members.authenticator;
    this.tokens = members.tokens;
    this.accounts = members.accounts;
    this.recovery = members.recovery;
    this.loginCodes = members.loginCodes;
    this.emailChange = members.emailChange;
    this.invitations = members.invitations;
    this.oauth = members.oauth;
    this.admin = members.admin;
    this.apiKeys = members.apiKeys;
    this.outbox = members.outbox;
    this.secondFactors = members.secondFactors;
    this.stepUp = members.stepUp;
    this.passkeys = members.passkeys;
    this.mailTo = members.mailer.to;
    this.userHooks = userHooks(members.schema, members.authenticator);
    this.#pruning = setInterval(() => void this.#prune().catch(() => undefined), PRUNE_EVERY_MS);
    this.#pruning.unref();
  }

  /** Throws KeySecretError. */
  static async open(parts: AuthParts) {
    const { db, schema, config, onMail, warn = warnOnStderr, passwords = createPasswordPool() } = parts;
    const baseUrl = (): string => config.baseUrl;
    const users = new Users(db, schema);
    const sessions = new Sessions(schema, users);
    const signingKeys = new SigningKeys(db, config.keySecret);
    const tokens = await AccessTokens.open({ signingKeys, issuer: baseUrl, lifetime: schema.sessions.access });
    const authenticator = await Authenticator.open({ db, schema, users, tokens, sessions });
    const limiter = createLimiter(db, config.rateLimit === false ? 'off' : schema.limits);
    const sendsNotices = schema.mail.notices && config.smtpUrl !== undefined;
    const mailer = createMailer({ schema, config, warn, onMail });
    const outbox = new Outbox(db, schema.mail.languages);
    const writer = new MailWriter(schema, baseUrl);
    const passwordCheck = new PasswordCheck({ db, users, passwords, limiter });
    const factorKey = new FactorKey(db, config.keySecret);
    if (await factorKey.secure()) warn(FACTOR_KEY_IN_PLAIN);
    const codes = new CodeCheck({ db, limiter, factorKey });
    const made = {
      db,
      schema,
      users,
      sessions,
      tokens,
      passwords,
      passwordCheck,
      authenticator,
      limiter,
      factorKey,
      codes,
      outbox,
      sendsNotices,
      baseUrl,
    };
    const accounts = new Accounts(made);
    const invitations = new Invitations({ ...made, accounts });
    const loginCodes = new LoginCodes({ ...made, accounts, keySecret: config.keySecret });
    const emailChange = new EmailChange({ ...made, loginCodes });
    const composers = accountMails({ ...made, writer, invitations, loginCodes, emailChange });
    const sender = new MailSender({ outbox, mailer, composers, observer: parts.mails, warn });
    const secondFactors = new SecondFactors(made);
    return new Auth({
      ...made,
      accounts,
      mailer,
      sender,
      invitations,
      loginCodes,
      emailChange,
      recovery: new Recovery(made),
      oauth: new OAuth({ ...made, accounts, identities: new Identities(db, schema, users) }),
      admin: new Administration({ ...made, secondFactors, setup: parts.setup }),
      apiKeys: new ApiKeys(made),
      secondFactors,
      stepUp: new StepUp({ ...made, secondFactors }),
      passkeys: new Passkeys({ ...made, accounts }),
    });
  }

  /** Sends a mail at once, past the outbox. Rejects with the code of the failure, without the address. */
  async sendTestMail(to: string): Promise<void> {
    const { mailer, baseUrl } = this.#members;
    const text = `This is a test mail of the service at ${baseUrl()}. Its settings of mail work.\n`;
    await mailer.send({ to, subject: 'A test mail', text }).catch((error: unknown) => {
      throw new Error(mailErrorOf(error));
    });
  }

  /** Sends mails from now on. Commands leave that to a service. */
  startSending(): void {
    this.#members.sender.start();
  }

  /** Records a link to a file's content: every holder of the link can read the file. */
  async fileLinkMade({ principal: userId, sessionId }: Caller, file: string, client: RequestClient): Promise<void> {
    await recordAudit(this.#members.db, { event: 'file_link_made', userId, sessionId, client, detail: { file } });
  }

  /** Counts a question about a decision against the limit of its asker. Throws `rate_limited`. */
  countQuestion({ principal }: Caller): Promise<void> {
    return this.#members.limiter.question(principal);
  }

  /** Records a question about a decision. `subject`: the user whom it is about; undefined: it is not about a user. */
  async explained(asker: Caller, { subject, client, ...detail }: ExplainedQuestion): Promise<void> {
    const { principal: actorId, sessionId } = asker;
    await recordAudit(this.#members.db, { event: 'explained', userId: subject, actorId, sessionId, client, detail });
  }

  async close(): Promise<void> {
    clearInterval(this.#pruning);
    await this.#members.sender.close();
    await this.authenticator.close();
  }

  async #prune(): Promise<void> {
    const { db, schema, sessions, limiter } = this.#members;
    if (schema.audit.keep !== undefined) await pruneAudit(db, schema.audit.keep);
    await sessions.prune(db);
    await limiter.prune();
    await pruneApiKeys(db);
    await pruneFormerGuests(db);
    await db.run(sql`DELETE FROM "_auth_passkey_challenges" WHERE expires_at < now()`);
    await db.run(sql`DELETE FROM "_auth_challenges" WHERE expires_at < now()`);
    await db.run(sql`DELETE FROM "_auth_oauth_codes" WHERE expires_at < now()`);
    await db.run(sql`DELETE FROM "_auth_flows" WHERE expires_at < now()`);
    await db.run(sql`DELETE FROM "_auth_email_tokens" WHERE expires_at < now()`);
    await db.run(sql`DELETE FROM "_auth_otp" WHERE expires_at < now()`);
    await db.run(sql`DELETE FROM "_auth_invites" WHERE expires_at < now()`);
  }
}

function warnOnStderr(msg: string): void {
  process.stderr.write(`${JSON.stringify({ level: 'warn', time: new Date().toISOString(), pid: process.pid, msg })}\n`);
}
