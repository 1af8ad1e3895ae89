/**
 * Frees the memory of a buffer immediately; the buffer is empty afterwards. V8 marks the whole heap
 * whenever buffers hold some 64 MB, dead ones included. Without this, that happens every 64 MB of a
 * file, and takes longer than the file.
 */
export function freeBuffer({ buffer, byteLength }: Buffer): void {
  // Other buffers may share the memory.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
