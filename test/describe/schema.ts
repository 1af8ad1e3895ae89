/** A schema with every kind of field and relation that descriptions distinguish. */
import { parseSchema } from '../../src/schema/load.ts';

export const SCHEMA = parseSchema(`roles: [editor]
oauth:
  example: { issuer: 'https://id.example', client_id: c, client_secret: s }
uploads: { types: [image/png, application/pdf] }
collections:
  posts:
    changes: true
    fields:
      title: { type: string, required: true, min: 1, max: 80 }
      state: { type: string, required: true, enum: [draft, live], default: draft }
      score: { type: int, min: 0 }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      tags: { kind: many_to_many, collection: members }
  members:
    relations: { posts: { kind: has_many, collection: pins, via: member } }
  pins:
    relations: { member: { kind: belongs_to, collection: members } }
`).schema!;
