/**
 * An access token names its issuer, the base URL of the node that signed it. Nodes of one database
 * with different base URLs reject each other's tokens; each of them says so, once.
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
  readonly #heard = new Set<string>();
  #unlisten: () => Promise<void> = async () => {};

  private constructor(parts: IssuerParts, place: string) {
    this.#parts = parts;
    this.#place = place;
    this.#heard.add(parts.issuer);
  }

  /** Never rejects: a node that cannot be heard serves all the same. */
  static async open(parts: IssuerParts): Promise<IssuerAnnouncements> {
    const place = await parts.db.rows(raw('SELECT current_schema()'), { lane: 'urgent' }).then(
      ([row]) => row?.[0] ?? '',
      () => '',
    );
    const news = new IssuerAnnouncements(parts, place);
    const unlisten = await parts.db
      .listen(
        ISSUER_CHANNEL,
        (payload) => news.#hear(payload),
        () => undefined,
      )
      .catch(() => undefined);
    if (unlisten !== undefined) news.#unlisten = unlisten;
    await news.#tell();
    return news;
  }

  close(): Promise<void> {
    return this.#unlisten();
  }

  async #tell(): Promise<void> {
    const { db, issuer } = this.#parts;
    await db.notify(ISSUER_CHANNEL, `${this.#place} ${issuer}`).catch(() => undefined);
  }

  #hear(payload: string): void {
    const [place, other = ''] = payload.split(' ');
    if (place !== this.#place || this.#heard.has(other)) return;
    this.#heard.add(other);
    this.#parts.warn(
      `another node of this database has the base URL ${other}, and this one ${this.#parts.issuer}: each rejects the access tokens ` +
        'of the other; give all of them the same BASE_URL',
    );
    // It started later, and has not heard of this one.
    void this.#tell();
  }
}
