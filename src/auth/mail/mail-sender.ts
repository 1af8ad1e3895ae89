/** Sends the mails of the outbox: ten at once on this node, each one at least once. */
import { inRounds } from '../../in-rounds.ts';
import { asCaller, SERVICE } from '../../queued-caller.ts';
import { withDeadline } from '../../with-deadline.ts';
import { type Mail, type Mailer, mailErrorOf } from './mailer.ts';
import type { ClaimedMail, MailKind, Outbox } from './outbox.ts';

/** `skipped`: no account has the address, or the mail is one too many for it. `expired`: it was tried for a day. */
type MailResult = 'sent' | 'skipped' | 'failed' | 'expired';

/** Counts for the metrics. */
export interface MailObserver {
  readonly onMail: (kind: MailKind, result: MailResult) => void;
}

/** Writes the mail of a request; undefined: the address gets none. */
export type Composer = (request: ClaimedMail) => Promise<Mail | undefined>;

export interface MailSenderParts {
  readonly outbox: Outbox;
  readonly mailer: Mailer;
  readonly composers: Readonly<Record<MailKind, Composer>>;
  readonly observer?: MailObserver | undefined;
  /** Reports a mail that could not be sent, never its content or address. */
  readonly warn: (message: string) => void;
}

const AT_ONCE = 10;
/** Milliseconds after which this node looks for requests that another node has left. */
const LOOK_EVERY_MS = 10_000;
/** Milliseconds that the end waits for mails that are being sent; then another node sends them again. */
const FAREWELL_MS = 5_000;

export class MailSender {
  readonly #parts: MailSenderParts;
  readonly #sending = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  /** The work belongs to no request, whichever it begins in. */
  readonly #fill = inRounds(() => asCaller(SERVICE, () => this.#fillNow()));

  constructor(parts: MailSenderParts) {
    this.#parts = parts;
  }

  /** Begins to send, also what was left by an earlier process. */
  start(): void {
    this.#parts.outbox.watch(() => this.#look());
    this.#look();
  }

  async close(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await withDeadline(
      Promise.all(this.#sending).then(() => undefined),
      FAREWELL_MS,
      () => undefined,
    );
  }

  #look(): void {
    if (!this.#isStopped) void this.#fill();
  }

  async #fillNow(): Promise<void> {
    clearTimeout(this.#timer);
    let pause = LOOK_EVERY_MS;
    try {
      await this.#take();
      if (this.#sending.size < AT_ONCE) pause = Math.min(pause, await this.#nextInMs());
    } catch {
      // The database is away. Requests cannot have arrived either.
    }
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => this.#look(), pause);
    this.#timer.unref();
  }

  async #take(): Promise<void> {
    const free = AT_ONCE - this.#sending.size;
    if (free === 0 || this.#isStopped) return;
    const claimed = await this.#parts.outbox.claim(free);
    for (const request of claimed) {
      const work = this.#send(request).finally(() => {
        this.#sending.delete(work);
        this.#look();
      });
      this.#sending.add(work);
    }
  }

  async #nextInMs(): Promise<number> {
    const next = await this.#parts.outbox.nextIn();
    return next === undefined ? LOOK_EVERY_MS : Math.max(10, Math.ceil(next * 1_000));
  }

  /** Never rejects. */
  async #send(request: ClaimedMail): Promise<void> {
    const { outbox, composers, mailer, observer, warn } = this.#parts;
    const { id, kind } = request;
    try {
      const mail = await composers[kind](request);
      if (mail !== undefined) await mailer.send(mail);
      await outbox.done(id);
      observer?.onMail(kind, mail === undefined ? 'skipped' : 'sent');
    } catch (error) {
      const reason = mailErrorOf(error);
      const isKept = await outbox.failed(request, reason).catch(() => true);
      observer?.onMail(kind, isKept ? 'failed' : 'expired');
      warn(isKept ? `a mail could not be sent (${reason})` : `a mail was not sent within a day (${reason})`);
    }
  }
}
