/** The data of a mail, which templates read as `it`. */
import type { Schema } from '../../schema/model/model.ts';

export interface MailData {
  /** The name of the application. */
  readonly app: string;
  readonly link: string | null;
  readonly code: string | null;
  /** The recipient: the address, and the fields of the account if there is one. */
  readonly user: Readonly<Record<string, unknown>>;
  /** The end of link and code, in UTC. */
  readonly expires: string | null;
  /** The subject of a notice. */
  readonly event: MailEvent | null;
}

export interface MailEvent {
  readonly new_email: string | null;
  readonly is_done: boolean;
  /** The event of the audit trail about second factors or passkeys. */
  readonly change: string | null;
  readonly ip: string | null;
  readonly device: string | null;
  readonly at: string | null;
}

export const NO_EVENT: MailEvent = { new_email: null, is_done: false, change: null, ip: null, device: null, at: null };

/** The names of `user`: an unknown address has them, too, so that a template fails for none. */
export function userNames({ collections }: Schema): readonly string[] {
  const users = collections.get('users');
  if (users === undefined) return ['email'];
  const references = [...users.relations.values()].filter(({ kind }) => kind === 'belongs_to');
  return ['id', 'email', 'email_verified', ...users.fields.keys(), ...references.map(({ name }) => name)];
}

/** Rejects names that the data does not have: a typing error would leave a hole in a mail. */
export function strict<T extends object>(data: T, place = 'it'): T {
  return new Proxy(data, {
    get(target, name) {
      if (typeof name === 'symbol') return Reflect.get(target, name);
      if (!Object.hasOwn(target, name)) {
        throw new Error(`${place} has no \`${name}\`; it has ${Object.keys(target).join(', ')}`);
      }
      const value = Reflect.get(target, name);
      return typeof value === 'object' && value !== null && !Array.isArray(value)
        ? strict(value, `${place}.${name}`)
        : value;
    },
  });
}
