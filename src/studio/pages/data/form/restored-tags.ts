/** The tags under which undos brought former versions of records back. */
export class RestoredTags {
  readonly #tags = new Map<string, string>();

  /** An undo brought the version of the tag `former` back under `tag`. */
  note(record: string, former: string, tag: string): void {
    this.#tags.set(versionKey(record, former), tag);
    this.#tags.delete(versionKey(record, tag));
  }

  /** The newest tag of the version that the record had under `tag`. */
  newest(record: string, tag: string): string {
    const next = this.#tags.get(versionKey(record, tag));
    return next === undefined ? tag : this.newest(record, next);
  }
}

/** A tag is `"VERSION.DIGEST"`: the digest is that of one answer. */
const versionKey = (record: string, tag: string): string => `${record} ${tag.slice(0, tag.lastIndexOf('.'))}`;
