/**
 * Requests for mails, which wait in the database. A row holds no secret and not the mail: the sender looks up
 * the account, makes the token and writes the mail. So an answer takes as long for an unknown address as for a
 * known one, and no request is lost in a crash.
 */
import { v7 } from 'uuid';
import { namedCells } from '../../database/cells.ts';
import type { Cells, Database, Queryable } from '../../database/contract.ts';
import { apiTime, empty, param, type Sql, seconds, sql, text, uuid } from '../../sql.ts';
import type { RequestClient } from '../audit-trail.ts';
import { preferredLanguage } from './languages.ts';

export const MAIL_KINDS = [
  'verify',
  'reset',
  'invite',
  'login',
  'email_change',
  'email_changed',
  'new_sign_in',
  'second_factor_changed',
] as const;
export type MailKind = (typeof MAIL_KINDS)[number];

export interface MailRequest {
  readonly kind: MailKind;
  /** The recipient, normalized. */
  readonly address: string;
  /** Facts for the mail and the audit trail. Never a secret. */
  readonly detail: MailDetail;
}

interface MailDetail {
  readonly client?: RequestClient | undefined;
  /** The user who caused it, if not the recipient. */
  readonly actorId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** The user whose address changes. */
  readonly userId?: string | undefined;
  /** The address that a notice is about, and whether it is that of the account now. */
  readonly newEmail?: string | undefined;
  readonly isDone?: boolean | undefined;
  /** The event of the audit trail that a notice is about. */
  readonly change?: string | undefined;
}

/** A request that a sender holds. */
export interface ClaimedMail extends MailRequest {
  readonly id: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  readonly createdAt: string;
  /** That of the client, if the mails have it. */
  readonly language: string | undefined;
}

export interface QueuedMail {
  readonly id: string;
  readonly kind: string;
  readonly address: string;
  readonly created_at: string;
  readonly due_at: string;
  readonly attempts: number;
  /** The code of the last failure. */
  readonly error: string | null;
}

/** Seconds in which a sender ends its attempt; then another may try. */
const LEASE = 300;
/** Seconds for which a mail is tried. */
const MAIL_LIFETIME = 86_400;
/** Seconds from a failed attempt to the next one, by the number of attempts so far. */
const PAUSES = [10, 60, 600, 3_600] as const;
const MOST_LISTED_MAILS = 1_000;

export class Outbox {
  readonly #db: Database;
  readonly #languages: readonly string[];
  #onAdded: () => void = () => undefined;

  /** `languages`: of the mails. */
  constructor(db: Database, languages: readonly string[]) {
    this.#db = db;
    this.#languages = languages;
  }

  /** `onAdded` is called after each request of this process. */
  watch(onAdded: () => void): void {
    this.#onAdded = onAdded;
  }

  async add(request: MailRequest): Promise<void> {
    await this.insert(this.#db, request);
    this.wake();
  }

  /** `where`: adds nothing if it is false. In a transaction, `wake` follows its end. */
  async insert(db: Queryable, { kind, address, detail }: MailRequest, where: Sql = empty): Promise<void> {
    const { language: header, ...client } = detail.client ?? {};
    const language = preferredLanguage(this.#languages, header);
    const facts = { ...detail, ...(detail.client !== undefined && { client }) };
    await db.run(sql`
      INSERT INTO "_auth_outbox" (id, kind, address, language, detail, created_at, due_at, attempts)
      SELECT ${uuid(v7())}, ${text(kind)}, ${text(address)}, ${text(language ?? null)},
             ${text(JSON.stringify(facts))}, now(), now(), 0 ${where}`);
  }

  wake(): void {
    this.#onAdded();
  }

  /** Takes requests that are due; the senders of all nodes take different ones. */
  async claim(most: number): Promise<readonly ClaimedMail[]> {
    const rows = await this.#db.transaction((tx) =>
      tx.rows(sql`
        UPDATE "_auth_outbox"
           SET due_at = now() + ${seconds(LEASE)},
               attempts = attempts + 1,
               error = NULL
         WHERE id IN (
               SELECT id
                 FROM "_auth_outbox"
                WHERE due_at <= now()
                ORDER BY due_at
                LIMIT ${param('int8', most)}
                  FOR UPDATE SKIP LOCKED)
     RETURNING id, kind, address, detail, attempts,
               ${apiTime(sql`created_at`)}, language`),
    );
    return rows.map(claimedMail);
  }

  async done(id: string): Promise<void> {
    await this.#db.run(sql`DELETE FROM "_auth_outbox" WHERE id = ${uuid(id)}`);
  }

  /** Returns false if the mail was tried for a day, and is dropped. `error`: without an address. */
  async failed({ id, attempt }: ClaimedMail, error: string): Promise<boolean> {
    const pause = PAUSES[Math.min(attempt, PAUSES.length) - 1]!;
    const kept = await this.#db.run(sql`
      UPDATE "_auth_outbox"
         SET due_at = now() + ${seconds(pause)},
             error = ${text(error)}
       WHERE id = ${uuid(id)}
         AND created_at > now() - ${seconds(MAIL_LIFETIME)}`);
    if (kept === 0) await this.done(id);
    return kept > 0;
  }

  /** Seconds until a request is due; undefined: none waits. */
  async nextIn(): Promise<number | undefined> {
    const [cells] = await this.#db.rows(sql`
      SELECT extract(epoch FROM min(due_at) - now())
        FROM "_auth_outbox"`);
    return cells?.[0] == null ? undefined : Number(cells[0]);
  }

  async size(): Promise<number> {
    const [cells] = await this.#db.rows(sql`SELECT count(*) FROM "_auth_outbox"`);
    return Number(cells?.[0] ?? 0);
  }

  /** Lists requests, oldest first. */
  async list(): Promise<readonly QueuedMail[]> {
    const rows = await this.#db.rows(sql`
      SELECT id, kind, address, ${apiTime(sql`created_at`)},
             ${apiTime(sql`due_at`)}, attempts, error
        FROM "_auth_outbox"
       ORDER BY id
       LIMIT ${param('int8', MOST_LISTED_MAILS)}`);
    return rows.map((cells) => {
      const { attempts, ...row } = namedCells(cells, 'id', 'kind', 'address', 'created_at', 'due_at', 'attempts');
      return { ...row, attempts: Number(attempts), error: cells[6] ?? null };
    });
  }

  /** Makes requests that wait after a failure due now. Returns how many. */
  async retry(): Promise<number> {
    const retried = await this.#db.run(sql`
      UPDATE "_auth_outbox"
         SET due_at = now()
       WHERE error IS NOT NULL
         AND due_at > now()`);
    this.wake();
    return retried;
  }
}

function claimedMail(cells: Cells): ClaimedMail {
  const { kind, detail, attempt, ...row } = namedCells(
    cells,
    'id',
    'kind',
    'address',
    'detail',
    'attempt',
    'createdAt',
  );
  return {
    ...row,
    kind: kind as MailKind,
    detail: JSON.parse(detail) as MailDetail,
    attempt: Number(attempt),
    language: cells[6] ?? undefined,
  };
}
