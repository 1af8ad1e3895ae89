import { schemaOf } from '../../support/store-world.ts';

/** Notes with a member of each kind that filters look into. */
export const NOTES = schemaOf(`
collections:
  notes:
    fields:
      title: string
      body: { type: string, search: true }
      letter: { type: string, search: true }
      labels: { type: list, of: string }
      meta: { type: json, paths: { color: string } }
      many: { type: json, paths: { color: string } }
    relations: { parent: { kind: belongs_to, collection: notes }, children: { kind: has_many, collection: notes, via: parent } }
    access: { view: true }
`);
