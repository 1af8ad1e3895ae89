/** The schema of the suites about API keys and guests, and keys made over the wire. */
import type { Client } from '../support/client.ts';
import type { TestService } from '../support/service.ts';

export const GUESTS_SCHEMA = `
roles:
  admin: {}
  lead: { assigns: [reader, writer] }
  writer: { includes: [reader] }
  reader: {}
guests: true
register: { roles: [reader] }
collections:
  shelves:
    fields: { name: { type: string, required: true } }
    access: { list: [{ roles: [reader, guest] }], read: [{ roles: [reader, guest] }], create: [{ roles: [writer] }] }
  books:
    fields: { title: { type: string, required: true }, shown: { type: bool, required: true, default: true } }
    relations:
      shelf: { kind: belongs_to, collection: shelves }
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
    access:
      list: '@record.shown or @record.owner = @request.auth.id'
      read: '@record.shown or @record.owner = @request.auth.id'
      create: [{ roles: [writer] }]
      update: [{ roles: [writer] }]
      delete: [{ roles: [writer] }]
  wishes:
    fields: { text: { type: string, required: true } }
    access: { create: true, list: [{ roles: [writer] }], read: [{ roles: [writer] }] }
  cards:
    fields: { text: { type: string, required: true } }
    relations: { owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' } }
    access: { create: [{ roles: [writer] }], list: '@record.owner != @request.auth.id', read: '@record.owner = @request.auth.id' }
`;

export interface Keyed {
  readonly id: string;
  readonly secret: string;
  /** Sends the key. */
  readonly client: Client;
}

/** A new key of the caller. */
export async function newApiKey(service: TestService, maker: Client, body: object = {}): Promise<Keyed> {
  const answer = await maker.post('/api/auth/keys', { name: 'of a test', roles: ['reader'], ...body });
  if (answer.status !== 201) throw new Error(answer.text);
  const { data, secret } = answer.body;
  return { id: data.id, secret, client: withKey(service, secret) };
}

export const withKey = (service: TestService, secret: string): Client =>
  service.anonymous.with({ Authorization: `Bearer ${secret}` });
