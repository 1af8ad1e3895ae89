/** The guests that became users: for an hour, a rule may hand over their records by `@request.auth.former_guest`. */
import type { Queryable, Transaction } from '../../database/contract.ts';
import { type Sql, seconds, sql, uuid } from '../../sql.ts';

const HANDOVER_SECONDS = 3_600;

/** Selects the session of the guest that became the user. */
export const formerGuestOf = (userId: Sql): Sql => sql`
  (SELECT f.guest
     FROM "_auth_former_guests" f
    WHERE f.user_id = ${userId}
      AND f.ended_at > now() - ${seconds(HANDOVER_SECONDS)})`;

/** INVARIANT: this transaction has ended the guest's session, so one user alone follows it. */
export async function keepFormerGuest(tx: Transaction, userId: string, guest: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO "_auth_former_guests" (user_id, guest, ended_at)
    VALUES (${uuid(userId)}, ${uuid(guest)}, now())
        ON CONFLICT (user_id) DO UPDATE
       SET guest = EXCLUDED.guest,
           ended_at = EXCLUDED.ended_at`);
}

export async function pruneFormerGuests(db: Queryable): Promise<void> {
  await db.run(sql`
    DELETE FROM "_auth_former_guests"
     WHERE ended_at < now() - ${seconds(HANDOVER_SECONDS)}`);
}
