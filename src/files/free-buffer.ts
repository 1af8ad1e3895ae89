/**
 * Frees the memory of a buffer at once instead of leaving it to the collector; the buffer is empty afterwards. V8 marks the whole heap whenever some 64 MB lie
 * in buffers, dead or not: without this, that is every 64 MB of a file, and takes longer than the file.
 */
export function freeBuffer({ buffer, byteLength }: Buffer): void {
  // Others may live in the same memory.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
