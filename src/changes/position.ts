/** Positions: opaque texts that only this service can make, and only for one feed of one caller. */
import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { Snapshot } from './snapshot.ts';
import { ByteReader, bytesOf } from './varints.ts';

export interface FeedPosition {
  readonly life: string;
  /** All of this snapshot was sent. */
  readonly from: Snapshot;
  /** Milliseconds: when `from` was taken. */
  readonly at: number;
  /** The changes up to `seq` that this snapshot sees were sent. */
  readonly to: Snapshot;
  readonly seq: number;
  /** Differs between positions of one `seq`. */
  readonly nth: number;
  /** Digests of what the caller was, and of the rules. */
  readonly caller: string;
  readonly rules: string;
}

/** The positions of a stretch differ in these. */
export type PlaceInStretch = Pick<FeedPosition, 'seq' | 'nth'>;

export type PositionWriter = (place: PlaceInStretch) => string;

const STRETCH_KEY_BYTES = 32;
/** `seq` as a double, which has each of them exactly, then `nth`. */
const PLACE_BYTES = 12;
/** The characters of 18 bytes: bytes in threes have whole characters, so that the parts of a position are texts. */
const POSITION_MAC_LENGTH = 24;
const REST_AT = POSITION_MAC_LENGTH + (PLACE_BYTES * 4) / 3;

export class Positions {
  readonly #key: KeyObject;

  /** @param secret the one that versions are keyed by; positions have a key of their own that is made from it */
  constructor(secret: Buffer) {
    this.#key = createSecretKey(createHmac('sha256', secret).update('positions of feeds').digest());
  }

  /** @param scope the collection, the filter and the principal, in one spelling */
  write({ seq, nth, ...stretch }: FeedPosition, scope: string): string {
    return this.writerOf(stretch, scope)({ seq, nth });
  }

  /** Writes the positions of one stretch: a replay has hundreds, so only the place of each is left to authenticate. */
  writerOf(
    { life, from, at, to, caller, rules }: Omit<FeedPosition, keyof PlaceInStretch>,
    scope: string,
  ): PositionWriter {
    const isOne = to === from;
    const rest = Buffer.concat([
      bytesOf([Math.floor(at), isOne ? 1 : 0]),
      from.bytes,
      ...(isOne ? [] : [to.bytes]),
      ...[life, caller, rules].flatMap((text) => [bytesOf([text.length]), Buffer.from(text)]),
    ]);
    const keyed = Buffer.alloc(STRETCH_KEY_BYTES + PLACE_BYTES);
    keyed.set(this.#keyOf(rest, scope));
    const end = rest.toString('base64url');
    return ({ seq, nth }) => {
      keyed.writeDoubleBE(seq, STRETCH_KEY_BYTES);
      keyed.writeUInt32BE(nth, STRETCH_KEY_BYTES + PLACE_BYTES - 4);
      return `${macOf(keyed)}${keyed.toString('base64url', STRETCH_KEY_BYTES)}${end}`;
    };
  }

  /** Undefined: it is not a position of this feed. */
  read(position: string, scope: string): FeedPosition | undefined {
    const place = Buffer.from(position.slice(POSITION_MAC_LENGTH, REST_AT), 'base64url');
    const rest = Buffer.from(position.slice(REST_AT), 'base64url');
    const mac = macOf(Buffer.concat([this.#keyOf(rest, scope), place]));
    // Several spellings have the same bytes.
    const spelling = Buffer.from(`${mac}${place.toString('base64url')}${rest.toString('base64url')}`);
    const given = Buffer.from(position);
    if (place.length !== PLACE_BYTES || given.length !== spelling.length) return undefined;
    if (!timingSafeEqual(given, spelling)) return undefined;
    const reader = new ByteReader(rest);
    const [at, isOne] = [reader.next(), reader.next() === 1];
    const from = Snapshot.from(reader);
    const to = isOne ? from : Snapshot.from(reader);
    const [seq, nth] = [place.readDoubleBE(0), place.readUInt32BE(PLACE_BYTES - 4)];
    return { at, seq, nth, from, to, life: reader.text(), caller: reader.text(), rules: reader.text() };
  }

  #keyOf(rest: Buffer, scope: string): Buffer {
    return createHmac('sha256', this.#key).update(JSON.stringify(scope)).update(rest).digest();
  }
}

/**
 * SHA-256 of a secret key and a place: one block of a fixed length, of whose hash a half is returned, so that it cannot be
 * extended. An HMAC for each event took three quarters of the time of a replay, and left an object to the collector.
 */
const macOf = (keyed: Buffer): string => hash('sha256', keyed, 'base64url').slice(0, POSITION_MAC_LENGTH);
