/** Requests to the service, with the cookie of the session. */
import { Client } from '../../client/client.ts';
import { Transport } from '../../client/transport.ts';

export const transport = new Transport(location.origin, { auth: 'cookie', retries: 1 });
export const service = new Client(transport);
