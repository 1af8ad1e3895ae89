/** An authenticator of passkeys in memory, which shares nothing with the packages of the service (WebAuthn Level 3, RFC 8949). */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** Bits of the flags: the user is present, was verified, and a credential follows. */
const FLAGS = { present: 0x01, verified: 0x04, attested: 0x40 } as const;

interface Credential {
  readonly id: Buffer;
  readonly userHandle: string;
  readonly privateKey: KeyObject;
  counter: number;
}

/** As much of the options as is read here, in JSON. */
interface Options {
  readonly challenge: string;
  readonly rp?: { readonly id?: string };
  readonly rpId?: string;
  readonly user?: { readonly id: string };
}

interface Ceremony {
  readonly publicKey: Options;
}

export class SoftwareAuthenticator {
  readonly #origin: string;
  #credential: Credential | undefined;

  /** `origin`: of the page that uses it. */
  constructor(origin: string) {
    this.#origin = origin;
  }

  /** The globals of a page, for code that is written for a browser. Parsed options stay JSON. */
  readonly globals = {
    navigator: {
      credentials: {
        create: async (ceremony: Ceremony) => ({ toJSON: () => this.create(ceremony.publicKey) }),
        get: async (ceremony: Ceremony) => ({ toJSON: () => this.get(ceremony.publicKey) }),
      },
    },
    PublicKeyCredential: {
      parseCreationOptionsFromJSON: (options: Options) => options,
      parseRequestOptionsFromJSON: (options: Options) => options,
    },
  };

  /** Makes a credential, in the place of the one before. */
  create({ challenge, rp, user }: Options, idBytes = 32): object {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const id = randomBytes(idBytes);
    this.#credential = { id, userHandle: user!.id, privateKey, counter: 0 };
    const { x, y } = publicKey.export({ format: 'jwk' });
    // COSE (RFC 9053): key type EC2, algorithm ES256, curve P-256.
    const key = cbor(
      new Map<number, Item>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x!, 'base64url')],
        [-3, Buffer.from(y!, 'base64url')],
      ]),
    );
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([id.length >> 8, id.length & 255]), id, key]);
    const authData = Buffer.concat([this.#data(rp?.id, FLAGS.attested), attested]);
    const attestation = new Map<string, Item>([
      ['fmt', 'none'],
      ['attStmt', new Map<string, Item>()],
      ['authData', authData],
    ]);
    const clientDataJSON = text(this.#clientData('webauthn.create', challenge));
    return this.#answer(id, { clientDataJSON, attestationObject: text(cbor(attestation)) });
  }

  get({ challenge, rpId }: Options): object {
    const { id, privateKey, userHandle } = this.#credential!;
    const authenticatorData = this.#data(rpId, 0);
    const clientData = this.#clientData('webauthn.get', challenge);
    const signed = Buffer.concat([authenticatorData, createHash('sha256').update(clientData).digest()]);
    const response = {
      clientDataJSON: text(clientData),
      authenticatorData: text(authenticatorData),
      signature: text(sign('sha256', signed, privateKey)),
      userHandle,
    };
    return this.#answer(id, response);
  }

  /** Counts each use. */
  #data(party: string | undefined, flags: number): Buffer {
    const site = party ?? new URL(this.#origin).hostname;
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(++this.#credential!.counter);
    const bits = Buffer.from([FLAGS.present | FLAGS.verified | flags]);
    return Buffer.concat([createHash('sha256').update(site).digest(), bits, counter]);
  }

  #clientData(type: string, challenge: string): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin, crossOrigin: false }));
  }

  #answer(id: Buffer, response: object): object {
    const name = text(id);
    return { id: name, rawId: name, type: 'public-key', clientExtensionResults: {}, response };
  }
}

const text = (bytes: Buffer): string => bytes.toString('base64url');

type Item = number | string | Buffer | ReadonlyMap<number | string, Item>;

/** RFC 8949: ints, byte strings, strings and maps. */
function cbor(item: Item): Buffer {
  if (typeof item === 'number') return item < 0 ? head(1, -1 - item) : head(0, item);
  if (typeof item === 'string') return Buffer.concat([head(3, Buffer.byteLength(item)), Buffer.from(item)]);
  if (Buffer.isBuffer(item)) return Buffer.concat([head(2, item.length), item]);
  return Buffer.concat([head(5, item.size), ...[...item].flatMap(([key, value]) => [cbor(key), cbor(value)])]);
}

function head(major: number, size: number): Buffer {
  if (size < 24) return Buffer.from([(major << 5) | size]);
  return size < 256 ? Buffer.from([(major << 5) | 24, size]) : Buffer.from([(major << 5) | 25, size >> 8, size & 255]);
}
