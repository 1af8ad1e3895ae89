/**
 * Counts the open streams of each caller, and of all. The primary of several workers counts for these, so this file
 * imports no part of the service.
 */

export interface StreamBounds {
  /** Streams of one caller. */
  readonly user: number;
  readonly node: number;
}

/** The bound that more streams would exceed. */
export type ExceededBound = keyof StreamBounds;

/** The places of the streams of a node. */
export interface StreamPlaces {
  readonly bounds: StreamBounds;
  /** Undefined: the places are taken. @param share the caller's name in limits */
  take(share: string, count: number): ExceededBound | undefined | Promise<ExceededBound | undefined>;
  leave(share: string, count: number): void;
}

export class StreamCounts {
  readonly #counts = new Map<string, number>();
  #all = 0;

  /** Takes no place if some bound would be exceeded. */
  take(share: string, count: number, { user, node }: StreamBounds): ExceededBound | undefined {
    if ((this.#counts.get(share) ?? 0) + count > user) return 'user';
    if (this.#all + count > node) return 'node';
    this.add(share, count);
    return undefined;
  }

  /** @param count negative: places become free */
  add(share: string, count: number): void {
    this.#all += count;
    const sum = (this.#counts.get(share) ?? 0) + count;
    if (sum === 0) this.#counts.delete(share);
    else this.#counts.set(share, sum);
  }

  /** The places that another one has counted become free. */
  subtract(other: StreamCounts): void {
    for (const [share, count] of other.#counts) this.add(share, -count);
  }
}

/** The places of a process that serves alone. */
export function ownStreamPlaces(bounds: StreamBounds): StreamPlaces {
  const counts = new StreamCounts();
  return {
    bounds,
    take: (share, count) => counts.take(share, count, bounds),
    leave: (share, count) => counts.add(share, -count),
  };
}
