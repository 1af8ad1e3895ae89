/** Sends a mail by SMTP. Without a server, mails become files in the data folder. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { v7 } from 'uuid';
import { memoized } from '../../memoized.ts';

export interface Mail {
  /** A single address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
}

export interface MailSettings {
  /** `smtp://user:password@host:587`, `smtps://…`. */
  readonly smtpUrl?: string | undefined;
  readonly mailFrom?: string | undefined;
  readonly replyTo?: string | undefined;
  /** Without an SMTP server, mails are written into its folder `mail`. */
  readonly dataDir: string;
  /** Read at each use. */
  readonly baseUrl: () => string;
  /** Reports, with the first mail, that mails become files. */
  readonly warn: (message: string) => void;
  /** Sees each mail that is written to a file. */
  readonly onMail?: ((mail: Mail) => void) | undefined;
}

const SEND_TIMEOUT_MS = 20_000;

type Send = (mail: Mail) => Promise<void>;

export class Mailer {
  /** `SMTP`, or a folder. */
  readonly to: string;
  /** Rejects with an error of which only `mailErrorOf` may be shown. */
  readonly send: Send;

  constructor(settings: MailSettings) {
    this.to = settings.smtpUrl === undefined ? mailFolderOf(settings) : 'SMTP';
    this.send = settings.smtpUrl === undefined ? toFolder(settings) : bySmtp(settings, settings.smtpUrl);
  }
}

const mailFolderOf = ({ dataDir }: MailSettings): string => join(dataDir, 'mail');

/** Messages of mail servers contain addresses. */
export function mailErrorOf(error: unknown): string {
  const { code, responseCode, name } = error as { code?: unknown; responseCode?: unknown; name?: unknown };
  return [code ?? name, responseCode].filter((part) => part !== undefined).join(' ');
}

/** The form of nodemailer, which would parse a plain string, and could find several addresses in it. */
const mailMessage = ({ mailFrom, replyTo, baseUrl }: MailSettings, { to, subject, text, html }: Mail) => ({
  from: mailFrom ?? `no-reply@${new URL(baseUrl()).hostname.replace(/^\[|\]$/g, '')}`,
  to: { name: '', address: to },
  ...(replyTo !== undefined && { replyTo }),
  subject,
  text,
  ...(html !== undefined && { html }),
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
