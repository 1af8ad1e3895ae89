/** A language server for the editor that started it: JSON-RPC over two streams, by `vscode-jsonrpc`. */
import { type Readable, Writable } from 'node:stream';
import { createMessageConnection, ErrorCodes, StreamMessageReader, StreamMessageWriter } from 'vscode-jsonrpc/node';
import { reasonOf } from '../../thrown.ts';
import { LanguageServer, type LanguageServerOptions } from './language-server.ts';

interface EditorStreams {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: { write(text: string): unknown };
}

/** Resolves when the editor ends the connection: with true, if it shut the server down before. */
export async function serveEditor(
  { stdin, stdout }: EditorStreams,
  options: Omit<LanguageServerOptions, 'notify' | 'refreshLenses'>,
): Promise<boolean> {
  const writer = new StreamMessageWriter(streamTo(stdout));
  const connection = createMessageConnection(new StreamMessageReader(stdin), writer);
  const server = new LanguageServer({
    ...options,
    notify: (method, params) => void connection.sendNotification(method, params),
    refreshLenses: () => void connection.sendRequest('workspace/codeLens/refresh').catch(() => undefined),
  });
  let complaint: Promise<void> | undefined;
  connection.onRequest((method, params) => server.request(method, params));
  connection.onError(([error]) => {
    const message = { code: ErrorCodes.ParseError, message: `the message is not readable (${reasonOf(error)})` };
    complaint = writer.write({ jsonrpc: '2.0', id: null, error: message } as never);
  });
  await new Promise<void>((resolve) => {
    // The last answer may be on its way.
    const end = (): void => void setImmediate(resolve);
    connection.onNotification((method, params) => {
      server.notify(method, params);
      if (server.isEnded) end();
    });
    connection.onClose(end);
    connection.listen();
  });
  await complaint;
  connection.dispose();
  // An open stdin keeps the process.
  (stdin as Readable).destroy();
  return server.wasShutDown;
}

const streamTo = (sink: EditorStreams['stdout']): Writable =>
  new Writable({
    write(chunk: Buffer, _encoding, done) {
      sink.write(chunk.toString());
      done();
    },
  });
