/** An authenticator app of RFC 6238 and RFC 4226, which shares nothing with the packages of the service. */
import { createHmac } from 'node:crypto';
import type { Database } from '../../src/database/contract.ts';
import { sql, uuid } from '../../src/sql.ts';
import type { Client } from '../support/client.ts';
import { newPerson, type Tokens } from './people.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function bytesOf(base32: string): Buffer {
  const bits = [...base32].map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from(bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2)));
}

/** @param steps from now, of 30 seconds each */
export function codeOfApp(secret: string, steps = 0): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const hash = createHmac('sha1', bytesOf(secret)).update(counter).digest();
  const number = hash.readUInt32BE(hash.at(-1)! & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, '0');
}

export interface Enrolled extends Tokens {
  readonly id: string;
  readonly email: string;
  readonly secret: string;
  readonly recoveryCodes: readonly string[];
}

/** A new person whose session has a second factor. */
export async function newEnrolled(client: Client): Promise<Enrolled> {
  const person = await newPerson(client);
  return { ...person, ...(await enrol(person.client)) };
}

/** A second factor of the client's user. */
export async function enrol(client: Client): Promise<Pick<Enrolled, 'secret' | 'recoveryCodes'>> {
  const { body } = await client.post('/api/auth/totp/enrol');
  const confirmed = await client.post('/api/auth/totp/confirm', { code: codeOfApp(body.secret) });
  if (confirmed.status !== 200) throw new Error(confirmed.text);
  return { secret: body.secret, recoveryCodes: confirmed.body.recovery_codes };
}

/** A code of the present step, which counts as unspent again: a test does not wait for the next one. */
export async function unspentCode(db: Database, { id, secret }: Pick<Enrolled, 'id' | 'secret'>): Promise<string> {
  await db.run(sql`UPDATE "_auth_totp" SET last_step = 0 WHERE user_id = ${uuid(id)}`);
  return codeOfApp(secret);
}
