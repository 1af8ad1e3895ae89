/** The server on this machine that a URL without a host means. */
import { existsSync, lstatSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Completes a URL without a host by the folder of the server's socket. */
export function atLocalServer(url: string): string {
  const [address = url, query = ''] = url.split(/\?(.*)/s);
  const keys = new URLSearchParams(query);
  const folder = NO_HOST.test(address) && !keys.has('host') ? socketFolder(keys.get('port')) : undefined;
  if (folder === undefined) return url;
  keys.set('host', folder);
  return `${address}?${keys}`;
}

const NO_HOST = /^postgres(?:ql)?:\/\/(?:[^/@]*@)?(?:\/|$)/;

/** The folder where libpq, and so `createdb`, finds a server without a host. Undefined: PGHOST, or this machine. */
function socketFolder(port: string | null): string | undefined {
  if (process.env.PGHOST) return undefined;
  const socket = `.s.PGSQL.${port || process.env.PGPORT || 5432}`;
  return ['/var/run/postgresql', '/tmp'].find((folder) => isServedBy(folder, socket));
}

/**
 * In a folder that every user may write, a socket counts only if it belongs to root, the folder's owner or this user,
 * because its listener gets the password.
 */
function isServedBy(folder: string, socket: string): boolean {
  const path = join(folder, socket);
  if (!existsSync(path)) return false;
  // The target of a link could change later.
  const found = lstatSync(path);
  const { mode, uid: keeper } = statSync(folder);
  const isGuarded = (mode & WRITABLE_BY_ALL) === 0 || [0, keeper, process.getuid?.()].includes(found.uid);
  return found.isSocket() && isGuarded;
}
const WRITABLE_BY_ALL = 0o002;
