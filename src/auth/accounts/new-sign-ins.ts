/** Recognizes a sign-in from a place that the user never came from. */
import type { Transaction } from '../../database/contract.ts';
import { sql, text, uuid } from '../../sql.ts';
import { clip, type RequestClient } from '../audit-trail.ts';

/** A sign-in that is recorded, though not committed. */
export interface RecordedSignIn {
  readonly userId: string;
  readonly sessionId: string;
  readonly client: RequestClient;
}

/** Returns true if the user has signed in before, but neither from this address nor from this device. */
export async function isNewPlace(tx: Transaction, { userId, sessionId, client }: RecordedSignIn): Promise<boolean> {
  const [cells] = await tx.rows(sql`
    SELECT count(*) > 0,
           coalesce(bool_or(ip = ${text(clip(client.ip))} OR user_agent = ${text(clip(client.userAgent))}), false)
      FROM "_auth_audit"
     WHERE user_id = ${uuid(userId)}
       AND session_id IS DISTINCT FROM ${uuid(sessionId)}
       AND event IN ('login', 'oauth_login', 'passkey_login')`);
  return cells?.[0] === 't' && cells[1] !== 't';
}
