/** A whole SMTP server, which asks for a password, and the parts of the mails that it received. */
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import { until } from '../../support/until.ts';

const [USER, PASSWORD] = ['robot', 'a password of mail'];

interface ServedMail {
  readonly to: string;
  readonly source: string;
}

export class MailServer {
  readonly #mails: ServedMail[] = [];
  readonly #server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    authMethods: ['PLAIN'],
    onAuth: ({ username, password }, _session, done) =>
      username === USER && password === PASSWORD ? done(null, { user: USER }) : done(new Error('wrong password')),
    onData: (stream, { envelope }, done) => {
      void text(stream).then((source) => {
        const [to] = envelope.rcptTo;
        this.#mails.push({ to: to!.address, source });
        done();
      });
    },
  });
  #url = '';

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.server.address() as { readonly port: number };
    this.#url = `smtp://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`;
  }

  get url(): string {
    return this.#url;
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /** The HTML part of the newest mail to the address with these words; waits for it. */
  async htmlFor(address: string, words: string): Promise<string> {
    const found = () =>
      this.#mails
        .filter(({ to }) => to === address)
        .map(({ source }) => htmlOf(source))
        .filter((part) => part.includes(words));
    await until(`a mail with "${words}" to ${address}`, () => found().length > 0);
    return found().at(-1)!;
  }
}

function htmlOf(source: string): string {
  const boundary = /boundary="([^"]+)"/.exec(source)![1]!;
  const part = source.split(`--${boundary}`).find((each) => /^Content-Type: text\/html/im.test(each))!;
  const [headers = '', ...body] = part.trimStart().split('\r\n\r\n');
  const content = body.join('\r\n\r\n');
  const encoding = /^Content-Transfer-Encoding: (\S+)/im.exec(headers)?.[1]?.toLowerCase();
  if (encoding === 'base64') return Buffer.from(content, 'base64').toString('utf8');
  return encoding === 'quoted-printable' ? unquoted(content) : content;
}

const unquoted = (content: string): string =>
  content
    .replaceAll('=\r\n', '')
    .replaceAll(/(?:=[0-9A-F]{2})+/g, (bytes) => Buffer.from(bytes.replaceAll('=', ''), 'hex').toString('utf8'));
