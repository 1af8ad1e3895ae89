/** A mail server that implements just enough of RFC 5321, and keeps the mails that it receives. */
import { createServer, type Socket } from 'node:net';

export interface ReceivedMail {
  readonly to: string;
  /** The source, with lines joined that quoted-printable had broken. */
  readonly source: string;
}

export class SmtpServer {
  readonly mails: ReceivedMail[] = [];
  /** Recipients are rejected for now (450). */
  isBusy = false;
  /** The most connections that were open at once. */
  mostOpen = 0;
  /** Waits before a mail is taken. */
  hold: Promise<void> = Promise.resolve();
  #open = 0;
  #port = 0;
  readonly #server = createServer((socket) => this.#serve(socket));

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as { port: number }).port;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.#port}`;
  }

  close(): void {
    this.#server.close();
  }

  to(address: string): readonly ReceivedMail[] {
    return this.mails.filter(({ to }) => to === address);
  }

  #serve(socket: Socket): void {
    this.mostOpen = Math.max(this.mostOpen, ++this.#open);
    socket.once('close', () => this.#open--).on('error', () => undefined);
    let [to, source, isData, rest] = ['', '', false, ''];
    const said = (line: string): void => void (socket.destroyed || socket.write(`${line}\r\n`));
    const take = async (): Promise<void> => {
      await this.hold;
      this.mails.push({ to, source: decoded(source) });
      said('250 kept');
    };
    const read = (line: string): void => {
      if (isData) {
        if (line !== '.') {
          source += `${line.replace(/^\.\./, '.')}\n`;
          return;
        }
        isData = false;
        void take();
      } else if (line === 'DATA') {
        [isData, source] = [true, ''];
        said('354 go on');
      } else if (line.startsWith('RCPT TO:')) {
        to = /<([^>]*)>/.exec(line)![1]!;
        said(this.isBusy ? '450 later' : '250 ok');
      } else if (line === 'QUIT') socket.end('221 bye\r\n');
      else said('250 ok');
    };
    said('220 test');
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\r\n');
      rest = lines.pop()!;
      for (const line of lines) read(line);
    });
  }
}

/** Decodes quoted-printable parts only: a token in a plain part may begin with `3D`. */
const decoded = (source: string): string =>
  source
    .split(/^(?=Content-Transfer-Encoding: )/m)
    .map((part) =>
      part.startsWith('Content-Transfer-Encoding: quoted-printable')
        ? part.replaceAll('=\n', '').replaceAll('=3D', '=')
        : part,
    )
    .join('');

/** The token of a mail. */
export const tokenIn = ({ source }: ReceivedMail): string => /(?:^|[=/])([\w-]{43})$/m.exec(source)![1]!;
