let milliseconds = 0;
let text = '';

/** The instant as ISO 8601, to the millisecond. Printed once for all requests of one. */
export function isoNow(): string {
  const now = Date.now();
  if (now !== milliseconds) {
    milliseconds = now;
    text = new Date(now).toISOString();
  }
  return text;
}
