/** Signs messages by the Standard Webhooks scheme (standardwebhooks.com, 1.0). */
import { createHmac } from 'node:crypto';

/** @param secrets `whsec_` and base64; each signs, so that a receiver can change from one to the next */
export function signedHeaders(secrets: readonly string[], id: string, body: string): Readonly<Record<string, string>> {
  const timestamp = Math.floor(Date.now() / 1000);
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') };
}
