/**
 * Positions: opaque texts that only this service can make, and only for one feed of one caller. A position is the mark of its
 * stream, which is made once, and a place in the log, which all streams share: a MAC for each event and subscriber took a
 * quarter of the processor time of a busy feed.
 */
import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import type { Moment } from './change-log.ts';
import { Snapshot } from './snapshot.ts';
import { ByteReader, varintBytes } from './varints.ts';

/** The part of the log that one read covers. */
export interface LogStretch {
  readonly life: string;
  /** All that it sees was sent. */
  readonly from: Moment;
  readonly to: Moment;
}

/** The changes of a stretch up to `seq` were sent. */
export interface PlaceInStretch {
  readonly seq: number;
  /** Differs between positions of one `seq`. */
  readonly nth: number;
}

/** The copy that the events of a stream keep current. */
export interface StreamBasis {
  readonly life: string;
  /** The first moment of the stream. */
  readonly since: Moment;
  /** Digests of what the caller was, and of the rules. */
  readonly caller: string;
  readonly rules: string;
}

export interface FeedPosition extends PlaceInStretch {
  readonly mark: string;
  readonly life: string;
  /** All of this snapshot was sent. */
  readonly from: Snapshot;
  /** Milliseconds: when `from` was taken. */
  readonly at: number;
  /** The changes up to `seq` that this snapshot sees were sent. */
  readonly to: Snapshot;
  readonly caller: string;
  readonly rules: string;
}

/** Bytes in threes have whole characters, so that the parts of a position are texts. */
const charactersOf = (bytes: number): number => (bytes * 4) / 3;
const MAC_LENGTH = charactersOf(18);
const POSITION_KEY_BYTES = 32;
const LIFE_BYTES = 16;
/** The digest of the caller has 12 characters, that of the rules 16. */
const CALLER_AT = LIFE_BYTES + 2 * 8;
const RULES_AT = CALLER_AT + 12;
const MARK_BYTES = RULES_AT + 16;
const MARK_LENGTH = MAC_LENGTH + charactersOf(MARK_BYTES);
/** `seq` as a double, which has each of them exactly, then `nth`. */
const PLACE_BYTES = 12;
const KEYED_PLACE_AT = POSITION_KEY_BYTES + LIFE_BYTES;
const PLACE_AT = MARK_LENGTH + MAC_LENGTH;
const STRETCH_AT = PLACE_AT + charactersOf(PLACE_BYTES);

export class Positions {
  readonly #markKey: Buffer;
  readonly #placeKey: Buffer;

  /** @param secret the one that versions are keyed by; positions have keys of their own that are made from it */
  constructor(secret: Buffer) {
    const keyOf = (use: string): Buffer => createHmac('sha256', secret).update(use).digest();
    this.#markKey = keyOf('marks of feeds');
    this.#placeKey = keyOf('places of feeds');
  }

  /**
   * The first part of the positions of a stream.
   *
   * INVARIANT: a place of another stream gains nothing. A place before `since` does not count, and the replay from a later one
   * is a part of the replay from the first position of the stream.
   *
   * @param scope the collection, the filter and the principal, in one spelling
   */
  markOf({ life, since, caller, rules }: StreamBasis, scope: string): string {
    const bytes = Buffer.alloc(MARK_BYTES);
    bytes.set(lifeBytes(life));
    bytes.writeDoubleBE(since.snapshot.xmax, LIFE_BYTES);
    bytes.writeDoubleBE(Math.floor(since.at), LIFE_BYTES + 8);
    bytes.write(`${caller}${rules}`, CALLER_AT, 'latin1');
    return `${this.#markMac(bytes, scope)}${bytes.toString('base64url')}`;
  }

  /** The other part, for the places of a stretch. */
  placesIn({ life, from, to }: LogStretch): StretchPlaces {
    const isOne = to.snapshot === from.snapshot;
    const stretch = Buffer.concat([
      varintBytes([Math.floor(from.at), isOne ? 1 : 0]),
      from.snapshot.bytes,
      ...(isOne ? [] : [to.snapshot.bytes]),
    ]);
    return new StretchPlaces(this.#placeKey, lifeBytes(life), stretch);
  }

  /** Undefined: it is not a position of this feed. */
  read(position: string, scope: string): FeedPosition | undefined {
    const bytesAt = (start: number, end?: number): Buffer => Buffer.from(position.slice(start, end), 'base64url');
    const mark = bytesAt(MAC_LENGTH, MARK_LENGTH);
    const place = bytesAt(PLACE_AT, STRETCH_AT);
    const stretch = bytesAt(STRETCH_AT);
    if (mark.length !== MARK_BYTES || place.length !== PLACE_BYTES) return undefined;
    const [seq, nth] = [place.readDoubleBE(0), place.readUInt32BE(8)];
    const life = mark.subarray(0, LIFE_BYTES);
    const places = new StretchPlaces(this.#placeKey, life, stretch);
    // Several spellings have the same bytes.
    const spelling = Buffer.from(
      `${this.#markMac(mark, scope)}${mark.toString('base64url')}${places.at({ seq, nth })}`,
    );
    const given = Buffer.from(position);
    if (given.length !== spelling.length || !timingSafeEqual(given, spelling)) return undefined;
    const reader = new ByteReader(stretch);
    const [at, isOne] = [reader.next(), reader.next() === 1];
    const from = Snapshot.from(reader);
    const to = isOne ? from : Snapshot.from(reader);
    if (from.xmax < mark.readDoubleBE(LIFE_BYTES) || at < mark.readDoubleBE(LIFE_BYTES + 8)) return undefined;
    const caller = mark.toString('latin1', CALLER_AT, RULES_AT);
    const rules = mark.toString('latin1', RULES_AT);
    return { mark: position.slice(0, MARK_LENGTH), life: lifeText(life), from, at, to, seq, nth, caller, rules };
  }

  #markMac(mark: Buffer, scope: string): string {
    return macOf(Buffer.concat([this.#markKey, mark, Buffer.from(scope)]));
  }
}

/** The places of one stretch, each of which is authenticated once for all streams. */
export class StretchPlaces {
  /** The key, the life, the place, and the stretch. */
  readonly #keyed: Buffer;
  readonly #end: string;
  readonly #known = new Map<number, string>();

  constructor(key: Buffer, life: Buffer, stretch: Buffer) {
    this.#keyed = Buffer.concat([key, life, Buffer.alloc(PLACE_BYTES), stretch]);
    this.#end = stretch.toString('base64url');
  }

  at(place: PlaceInStretch): string {
    if (place.nth > 0) return this.#textOf(place);
    const known = this.#known.get(place.seq);
    if (known !== undefined) return known;
    const text = this.#textOf(place);
    this.#known.set(place.seq, text);
    return text;
  }

  #textOf({ seq, nth }: PlaceInStretch): string {
    this.#keyed.writeDoubleBE(seq, KEYED_PLACE_AT);
    this.#keyed.writeUInt32BE(nth, KEYED_PLACE_AT + 8);
    const place = this.#keyed.toString('base64url', KEYED_PLACE_AT, KEYED_PLACE_AT + PLACE_BYTES);
    return `${macOf(this.#keyed)}${place}${this.#end}`;
  }
}

/**
 * A half of the SHA-256 of a secret key and what follows it, so that it cannot be extended. An HMAC takes three times as long,
 * and a replay that shares its places with no other has hundreds.
 *
 * @param keyed a key that nothing else uses, then bytes of one form
 */
const macOf = (keyed: Buffer): string => hash('sha256', keyed, 'base64url').slice(0, MAC_LENGTH);

const lifeBytes = (life: string): Buffer => Buffer.from(life.replaceAll('-', ''), 'hex');
const lifeText = (life: Buffer): string => life.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
