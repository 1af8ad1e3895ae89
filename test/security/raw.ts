/** Requests written byte by byte: what no client library would send. */
import { connect, type Socket } from 'node:net';

export function openSocket(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  return socket;
}

/** Everything that the server sends until it closes the connection. */
export async function readToEnd(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

export function sendRaw(url: string, bytes: string | Buffer): Promise<string> {
  const socket = openSocket(url);
  socket.write(bytes);
  return readToEnd(socket);
}
