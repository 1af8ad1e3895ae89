/** The bounds on streams of changes: other requests keep a share of the connections. */
import type { StreamBounds } from '../changes/stream-places.ts';
import type { Config } from '../config.ts';
import type { Schema } from '../schema/model/model.ts';

/** The share of the connections that streams may hold. */
const STREAM_SHARE = 0.75;

/** Throws where streams would leave too few connections for other requests. */
export function streamBoundsOf(
  { limits: { feeds } }: Pick<Schema, 'limits'>,
  { maxConnections }: Pick<Config, 'maxConnections'>,
): StreamBounds {
  const most = Math.ceil(maxConnections * STREAM_SHARE);
  const { user, node = most } = feeds;
  if (node <= most) return { user, node };
  const share = `${most} of the ${maxConnections} connections of BYLAW_MAX_CONNECTIONS may be streams`;
  throw new Error(`limits.feeds.node is ${node}, and ${share}; raise BYLAW_MAX_CONNECTIONS, or lower the limit`);
}
