/**
 * Sends mails after the answer, one after the other, so that an answer takes as long for an unknown
 * address as for a known one. Without an SMTP server they become files in the data folder.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { v7 } from 'uuid';
import { memoized } from '../../memoized.ts';
import { Problem } from '../../problem.ts';

export interface Mail {
  /** A single address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface MailSettings {
  /** `smtp://user:password@host:587`, `smtps://…`. */
  readonly smtpUrl?: string | undefined;
  readonly mailFrom?: string | undefined;
  /** Without an SMTP server, mails are written into its folder `mail`. */
  readonly dataDir: string;
  /** Read at each use. */
  readonly baseUrl: () => string;
  /**
   * Reports a mail that could not be sent, never its content or address; and, with the first one,
   * that mails become files.
   */
  readonly warn: (message: string) => void;
  /** Sees each mail that is written to a file. */
  readonly onMail?: ((mail: Mail) => void) | undefined;
}

const MAX_WAITING_MAILS = 1_000;
const SEND_TIMEOUT_MS = 20_000;

type Send = (mail: Mail) => Promise<void>;

export class Mailer {
  /** `SMTP`, or a folder. */
  readonly to: string;
  readonly #settings: MailSettings;
  readonly #send: Send;
  #waiting = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(settings: MailSettings) {
    this.#settings = settings;
    this.to = settings.smtpUrl === undefined ? mailFolderOf(settings) : 'SMTP';
    this.#send = settings.smtpUrl === undefined ? toFolder(settings) : bySmtp(settings, settings.smtpUrl);
  }

  /**
   * Runs `work`, which decides whether there is a mail to send, after the answer. Throws
   * `unavailable` when too many wait.
   */
  later(work: () => Promise<Mail | undefined>): void {
    if (this.#waiting >= MAX_WAITING_MAILS) {
      throw new Problem('unavailable', 'too many mails wait to be sent; try again shortly', {
        headers: { 'Retry-After': '5' },
      });
    }
    this.#waiting++;
    this.#last = this.#last
      .then(work)
      .then((mail) => (mail === undefined ? undefined : this.#send(mail)))
      .catch((error: unknown) => this.#settings.warn(`a mail could not be sent (${mailErrorOf(error)})`))
      .finally(() => {
        this.#waiting--;
      });
  }

  /** Waits for pending mails. */
  close(): Promise<void> {
    return this.#last;
  }
}

const mailFolderOf = ({ dataDir }: MailSettings): string => join(dataDir, 'mail');

/** Messages of mail servers contain addresses. */
function mailErrorOf(error: unknown): string {
  const { code, responseCode, name } = error as { code?: unknown; responseCode?: unknown; name?: unknown };
  return [code ?? name, responseCode].filter((part) => part !== undefined).join(' ');
}

/** The form of nodemailer, which would parse a plain string, and could find several addresses in it. */
const mailMessage = ({ mailFrom, baseUrl }: MailSettings, { to, subject, text }: Mail) => ({
  from: mailFrom ?? `no-reply@${new URL(baseUrl()).hostname.replace(/^\[|\]$/g, '')}`,
  to: { name: '', address: to },
  subject,
  text,
  disableFileAccess: true,
  disableUrlAccess: true,
});

/** Lazy: most processes send no mail for a while, and the package is slow to load. */
const loadNodemailer = () => import('nodemailer');

function bySmtp(settings: MailSettings, url: string): Send {
  const transport = memoized(async () => {
    const { createTransport } = await loadNodemailer();
    const made = createTransport(url, {});
    Object.assign(made.options, {
      connectionTimeout: SEND_TIMEOUT_MS,
      greetingTimeout: SEND_TIMEOUT_MS,
      socketTimeout: SEND_TIMEOUT_MS,
    });
    return made;
  });
  return async (mail) => {
    await (await transport()).sendMail(mailMessage(settings, mail));
  };
}

function toFolder(settings: MailSettings): Send {
  const folder = mailFolderOf(settings);
  const transport = memoized(async () => {
    const { createTransport } = await loadNodemailer();
    return createTransport({ streamTransport: true, buffer: true, newline: 'unix' });
  });
  let isAnnounced = false;
  return async (mail) => {
    if (!isAnnounced) settings.warn(`SMTP_URL is not set: mails are written as files into ${folder}`);
    isAnnounced = true;
    const { message } = await (await transport()).sendMail(mailMessage(settings, mail));
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, `${v7()}.eml`), message as Buffer, { mode: 0o600, flag: 'wx' });
    settings.onMail?.(mail);
  };
}
