/**
 * Warns of nodes of one database with different base URLs, once on each node. An access token names
 * its issuer, the base URL of the node that signed it, so such nodes reject each other's tokens.
 */
import type { Database } from '../database/contract.ts';
import { raw } from '../sql.ts';

const ISSUER_CHANNEL = 'bylaw_issuer';

/** Returns a function that stops listening. Never rejects: a node without announcements serves all the same. */
export async function announceIssuer(
  db: Database,
  issuer: string,
  warn: (message: string) => void,
): Promise<() => Promise<void>> {
  // Notifications reach every node of the database, whichever schema of it has its tables.
  const place = await db.rows(raw('SELECT current_schema()'), { lane: 'urgent' }).then(
    ([row]) => row?.[0] ?? '',
    () => '',
  );
  const known = new Set([issuer]);
  const announce = (): Promise<unknown> => db.notify(ISSUER_CHANNEL, `${place} ${issuer}`).catch(() => undefined);
  const onMessage = (payload: string): void => {
    const [otherPlace, other = ''] = payload.split(' ');
    if (otherPlace !== place || known.has(other)) return;
    known.add(other);
    warn(
      `another node of this database has the base URL ${other}, and this one ${issuer}: ` +
        'each rejects the access tokens of the other; give all of them the same BASE_URL',
    );
    // The other node started later, and does not know this one.
    void announce();
  };
  const unlisten = await db
    .listen({ channel: ISSUER_CHANNEL, onMessage, onState: () => undefined })
    .catch(() => async () => {});
  await announce();
  return unlisten;
}
