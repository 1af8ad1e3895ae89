/** The texts of the page in its address: deflated, base64url, behind the `#`, which is never sent. */
export interface PageState {
  readonly schema: string;
  readonly world: string;
  readonly collection: string;
  readonly action: string;
}

const MOST_LENGTH = 32_768;

const piped = async (
  bytes: Uint8Array<ArrayBuffer>,
  stream: CompressionStream | DecompressionStream,
): Promise<ArrayBuffer> => new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();

/** Undefined: the texts are too long for an address. */
export async function hashOf(state: PageState): Promise<string | undefined> {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = new Uint8Array(await piped(bytes, new CompressionStream('deflate-raw')));
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(''));
  const hash = text
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/={1,2}$/, '');
  return hash.length <= MOST_LENGTH ? hash : undefined;
}

/** Undefined: the hash is not one of `hashOf`. */
export async function stateInHash(hash: string): Promise<PageState | undefined> {
  if (hash === '' || hash.length > MOST_LENGTH) return undefined;
  try {
    const text = atob(hash.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const json = new TextDecoder().decode(await piped(bytes, new DecompressionStream('deflate-raw')));
    const { schema, world, collection, action } = JSON.parse(json) as Partial<Record<keyof PageState, unknown>>;
    return { schema: String(schema), world: String(world), collection: String(collection), action: String(action) };
  } catch {
    return undefined;
  }
}
