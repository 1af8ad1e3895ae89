/** The defaults of a schema file. The reader of the file and its documentation take the values from here. */
export const DEFAULT_SESSIONS = { access: '15m', refresh: '30d', idle: '14d' } as const;

export const DEFAULT_LIMITS = {
  login_account: '10 in 15m',
  login_address: '50 in 15m',
  register: '50 in 15m',
  refresh: '600 in 15m',
  reset: '10 in 15m',
  guest: '30 in 1h',
  body: '256KiB',
  answer: '16MiB',
  query_time: '2s',
  write_time: '5s',
} as const;

/** The open streams of one caller. */
export const DEFAULT_FEED_STREAMS = 20;

/** How long the change log keeps the changes of a feed. */
export const DEFAULT_RETENTION = '1h';

/** The largest `limits.body`: bodies are in memory as a whole. */
export const MOST_BODY = '16MiB';

export const DEFAULT_UPLOADS = {
  max_size: '100MiB',
  image_lengths: [64, 128, 256, 512, 1024, 2048],
  max_pixels: 50_000_000,
} as const;

export const DEFAULT_SCOPES = ['openid', 'email', 'profile'] as const;
export const DEFAULT_CLIENT_AUTH = 'basic';
