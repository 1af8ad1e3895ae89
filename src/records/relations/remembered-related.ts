import type { Related, Row } from '../../policy/types.ts';

/** Asks for rows once: a filter that compares related rows with each other walks to the same ones again and again. */
export class RememberedRelated implements Related {
  readonly #related: Related;
  readonly #ones = new Map<string, Row | undefined>();
  readonly #manys = new Map<string, readonly Row[]>();

  constructor(related: Related) {
    this.#related = related;
  }

  one(collection: string, id: string): Row | undefined {
    const key = `${collection} ${id}`;
    if (!this.#ones.has(key)) this.#ones.set(key, this.#related.one(collection, id));
    return this.#ones.get(key);
  }

  many(collection: string, relation: string, id: string): readonly Row[] {
    const key = `${collection} ${relation} ${id}`;
    const known = this.#manys.get(key) ?? this.#related.many(collection, relation, id);
    this.#manys.set(key, known);
    return known;
  }
}
