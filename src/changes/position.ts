/** Positions: opaque texts that only this service can make, and only for one feed of one caller. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
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

const POSITION_MAC_BYTES = 16;
const NO_MAC = Buffer.alloc(POSITION_MAC_BYTES);

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

  /** Writes the positions of one stretch: a replay has hundreds. */
  writerOf(
    { life, from, at, to, caller, rules }: Omit<FeedPosition, keyof PlaceInStretch>,
    scope: string,
  ): PositionWriter {
    const isOne = to === from;
    const time = Math.floor(at);
    const rest = Buffer.concat([
      from.bytes,
      ...(isOne ? [] : [to.bytes]),
      ...[life, caller, rules].flatMap((text) => [bytesOf([text.length]), Buffer.from(text)]),
    ]);
    const spelling = JSON.stringify(scope);
    return ({ seq, nth }) => {
      const bytes = Buffer.concat([NO_MAC, bytesOf([time, seq, nth, isOne ? 1 : 0]), rest]);
      bytes.set(this.#mac(bytes.subarray(POSITION_MAC_BYTES), spelling));
      return bytes.toString('base64url');
    };
  }

  /** Undefined: it is not a position of this feed. */
  read(position: string, scope: string): FeedPosition | undefined {
    const bytes = Buffer.from(position, 'base64url');
    const mac = bytes.subarray(0, POSITION_MAC_BYTES);
    const payload = bytes.subarray(POSITION_MAC_BYTES);
    if (mac.length < POSITION_MAC_BYTES || bytes.toString('base64url') !== position) return undefined;
    if (!timingSafeEqual(mac, this.#mac(payload, JSON.stringify(scope)))) return undefined;
    const reader = new ByteReader(payload);
    const [at, seq, nth, isOne] = [reader.next(), reader.next(), reader.next(), reader.next() === 1];
    const from = Snapshot.from(reader);
    const to = isOne ? from : Snapshot.from(reader);
    return { at, seq, nth, from, to, life: reader.text(), caller: reader.text(), rules: reader.text() };
  }

  #mac(payload: Buffer, spelling: string): Buffer {
    return createHmac('sha256', this.#key).update(spelling).update(payload).digest().subarray(0, POSITION_MAC_BYTES);
  }
}
