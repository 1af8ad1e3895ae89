/**
 * Mails leave after the answer, one after the other, so that an answer takes as long for an address that exists as for one that does not.
 * Without an SMTP server they become files in the data folder.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTransport } from 'nodemailer';
import { v7 } from 'uuid';
import { Problem } from '../problem.ts';

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface MailSettings {
  /** `smtp://user:password@host:587`, `smtps://…`. */
  readonly smtpUrl?: string | undefined;
  readonly mailFrom?: string | undefined;
  /** Where mails are written without an SMTP server; in its folder `mail`. */
  readonly dataDir: string;
  readonly baseUrl: string;
  /** A mail that could not be sent, never its content or address; and, with the first one, that mails become files. */
  readonly tell: (message: string) => void;
}

export interface Mailer {
  /** `SMTP`, or a folder. */
  readonly to: string;
  /** What finds out whether there is a mail to send, and to whom. Runs after the answer. Throws `unavailable` when too many wait. */
  later(work: () => Promise<Mail | undefined>): void;
  /** Waits for what is under way. */
  close(): Promise<void>;
}

const MAX_WAITING = 1_000;
const SEND_TIMEOUT_MS = 20_000;

export function createMailer(settings: MailSettings): Mailer {
  const send = settings.smtpUrl === undefined ? toFolder(settings) : bySmtp(settings, settings.smtpUrl);
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();
  return {
    to: settings.smtpUrl === undefined ? folderOf(settings) : 'SMTP',
    later(work) {
      if (waiting >= MAX_WAITING) {
        throw new Problem('unavailable', 'too many mails wait to be sent; try again shortly', {
          headers: { 'Retry-After': '5' },
        });
      }
      waiting++;
      last = last
        .then(work)
        .then((mail) => (mail === undefined ? undefined : send(mail)))
        .catch((error: unknown) => settings.tell(`a mail could not be sent (${reasonOf(error)})`))
        .finally(() => {
          waiting--;
        });
    },
    close: () => last,
  };
}

const folderOf = ({ dataDir }: MailSettings): string => join(dataDir, 'mail');

/** Messages of mail servers name addresses. */
function reasonOf(error: unknown): string {
  const { code, responseCode, name } = error as { code?: unknown; responseCode?: unknown; name?: unknown };
  return [code ?? name, responseCode].filter((part) => part !== undefined).join(' ');
}

type Send = (mail: Mail) => Promise<void>;

const senderOf = ({ mailFrom, baseUrl }: MailSettings): string =>
  mailFrom ?? `no-reply@${new URL(baseUrl).hostname.replace(/^\[|\]$/g, '')}`;

function bySmtp(settings: MailSettings, url: string): Send {
  const transport = createTransport(url, {});
  const { options } = transport;
  Object.assign(options, {
    connectionTimeout: SEND_TIMEOUT_MS,
    greetingTimeout: SEND_TIMEOUT_MS,
    socketTimeout: SEND_TIMEOUT_MS,
  });
  return async (mail) => {
    await transport.sendMail({ from: senderOf(settings), ...mail, disableFileAccess: true, disableUrlAccess: true });
  };
}

function toFolder(settings: MailSettings): Send {
  const folder = folderOf(settings);
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'unix' });
  let told = false;
  return async (mail) => {
    if (!told) settings.tell(`there is no SMTP_URL: mails are written as files into ${folder}`);
    told = true;
    const { message } = await transport.sendMail({
      from: senderOf(settings),
      ...mail,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, `${v7()}.eml`), message as Buffer, { mode: 0o600, flag: 'wx' });
  };
}
