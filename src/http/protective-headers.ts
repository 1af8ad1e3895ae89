/** Every answer carries them: a browser shall not guess, frame, or load anything on behalf of what it was given. */
export const PROTECTIVE_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
