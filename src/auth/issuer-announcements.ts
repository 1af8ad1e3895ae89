/**
 * Warns of nodes of one database with different base URLs, once on each node. An access token names
 * its issuer, the base URL of the node that signed it, so such nodes reject each other's tokens.
 */

import type { Database } from '../database/contract.ts';
import { raw } from '../sql.ts';

const ISSUER_CHANNEL = 'bylaw_issuer';

export interface IssuerParts {
  readonly db: Database;
  readonly issuer: string;
  readonly warn: (message: string) => void;
}

export class IssuerAnnouncements {
  readonly #parts: IssuerParts;
  /** Notifications reach every node of the database, whichever schema of it has its tables. */
  readonly #place: string;
  readonly #known = new Set<string>();
  #unlisten: () => Promise<void> = async () => {};

  private constructor(parts: IssuerParts, place: string) {
    this.#parts = parts;
    this.#place = place;
    this.#known.add(parts.issuer);
  }

  /** Never rejects: a node without announcements serves all the same. */
  static async open(parts: IssuerParts): Promise<IssuerAnnouncements> {
    const place = await parts.db.rows(raw('SELECT current_schema()'), { lane: 'urgent' }).then(
      ([row]) => row?.[0] ?? '',
      () => '',
    );
    const announcements = new IssuerAnnouncements(parts, place);
    const unlisten = await parts.db
      .listen(
        ISSUER_CHANNEL,
        (payload) => announcements.#receive(payload),
        () => undefined,
      )
      .catch(() => undefined);
    if (unlisten !== undefined) announcements.#unlisten = unlisten;
    await announcements.#announce();
    return announcements;
  }

  close(): Promise<void> {
    return this.#unlisten();
  }

  async #announce(): Promise<void> {
    const { db, issuer } = this.#parts;
    await db.notify(ISSUER_CHANNEL, `${this.#place} ${issuer}`).catch(() => undefined);
  }

  #receive(payload: string): void {
    const [place, other = ''] = payload.split(' ');
    if (place !== this.#place || this.#known.has(other)) return;
    this.#known.add(other);
    this.#parts.warn(
      `another node of this database has the base URL ${other}, and this one ${this.#parts.issuer}: each rejects the access tokens ` +
        'of the other; give all of them the same BASE_URL',
    );
    // The other node started later, and does not know this one.
    void this.#announce();
  }
}
