/** A subscriber of the fuzz: it keeps a copy of its list by events, and finds records and fields that it must not receive. */
import type { Members } from '../../../src/records/record-shape.ts';
import type { AccessContext, Records } from '../../../src/records/records.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { CountedCommits } from './counted-commits.ts';
import type { FeedModules } from './feed-modules.ts';
import type { FeedNode, NodeEvent, NodeStream, Subscription } from './feed-node.ts';
import { type ListedRecords, listOf } from './snapshot-lists.ts';

export interface WatcherGrounds {
  readonly records: Records;
  readonly schema: Schema;
  readonly compileFilter: FeedModules['compileFilter'];
}

export interface Watching extends Subscription {
  readonly access: () => AccessContext;
}

/** The words of a copy that differs from its list: events may still come. */
export const DIFFERS = ': the copy has ';

/** The positions that a watcher remembers. */
const MOST_PAST = 8;

export class Watcher {
  copy = new Map<string, string>();
  readonly label: string;
  resets = 0;
  events = 0;
  /** Events that were compared with the list of their snapshot, amid writes. */
  compared = 0;
  readonly #grounds: WatcherGrounds;
  readonly #watching: Watching;
  readonly #filter: ReturnType<FeedModules['compileFilter']>['filter'];
  readonly #members: Members | undefined;
  readonly #everListed = new Set<string>();
  /** The values of the field with a rule, by record, that some list has shown. */
  readonly #everShown = new Set<string>();
  #received: NodeEvent[] = [];
  #position: string | undefined;
  /** The latest positions, each with the copy that a subscriber had there. */
  #past: (readonly [string, ReadonlyMap<string, string>])[] = [];
  /** The commits since the last quiet moment. */
  readonly #commits = new CountedCommits();
  /** The positions of the present stream. */
  readonly #ids = new Set<string>();
  #stream: NodeStream | undefined;
  #node: FeedNode | undefined;
  #mustList = true;
  #onReady: () => void = () => undefined;

  constructor(grounds: WatcherGrounds, watching: Watching) {
    const { collection, filter, fields } = watching;
    this.#grounds = grounds;
    this.#watching = watching;
    this.#members = fields && new Set(fields);
    this.#filter =
      filter === undefined
        ? undefined
        : grounds.compileFilter(filter, { catalog: grounds.schema, collection, params: {} }).filter;
    this.label = `${watching.access().principal.slice(7, 8)} ${collection} ${filter ?? ''} ${fields ?? ''}`;
  }

  async begin(node: FeedNode): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      this.#onReady = resolve;
    });
    this.#node = node;
    this.#commits.forget();
    this.#ids.clear();
    this.#mustList ||= this.#position === undefined;
    const { access: _, ...subscription } = this.#watching;
    this.#stream = await node.subscribe({ ...subscription, since: this.#position }, (event) => {
      this.#received.push(event);
      if (event.type === 'ready') this.#onReady();
    });
    // The failure of a node ends its streams, and is read behind.
    await Promise.race([ready, this.#stream.ended]);
  }

  /** @param back the number of the latest events that never arrived */
  pause(back = 0): void {
    this.#stream?.leave();
    this.#stream = undefined;
    this.#node = undefined;
    this.#received = [];
    const [position, copy] = this.#past.at(-1 - back) ?? [this.#position, this.copy];
    this.#position = position;
    this.copy = new Map(copy);
    this.#past = [];
  }

  /** Events may still be on their way at the next look. */
  forgetCommits(): void {
    this.#commits.forget();
  }

  isOf(node: FeedNode): boolean {
    return this.#node === node;
  }

  get caller(): number {
    return this.#watching.caller;
  }

  /** The events that came last, as their types with the reasons of resets. */
  get waiting(): readonly string[] {
    return this.#received.map(({ type, data }) => (type === 'reset' ? data : type));
  }

  get isPaused(): boolean {
    return this.#stream === undefined;
  }

  /** Earlier changes are being replayed. */
  get isBehind(): boolean {
    return this.#stream?.isBehind === true;
  }

  /** Notes the records that the list shows at this moment, though no event may follow. */
  async noteList(): Promise<ListedRecords> {
    const list = await this.#list();
    this.#commits.note(list);
    for (const [id, record] of list) {
      this.#everListed.add(id);
      this.#everShown.add(secretOf(JSON.parse(record)));
    }
    return list;
  }

  /** Takes the events up to a quiet moment. → what is wrong */
  async settle(still: number | undefined): Promise<string | undefined> {
    const list = await this.noteList();
    const received = this.#received;
    this.#received = [];
    const merged = this.#commits.mergedIn(received, list);
    if (merged !== undefined) return merged;
    if (this.#mustList) this.copy = new Map(list);
    this.#mustList = false;
    for (const event of received) {
      const { position, type, data: text } = event;
      const data = JSON.parse(`{${text}}`);
      const isRaced = event.still === undefined || event.still !== still;
      this.events++;
      if (this.#ids.has(position)) return `two events of a stream have one id, the second a ${type}: ${text}`;
      this.#ids.add(position);
      this.#position = position;
      if (type === 'reset') {
        this.resets++;
        this.copy = new Map(list);
      }
      // Related rows are those of the moment when an event is sent, so a write between may show the state before a commit.
      if (type === 'leave' && !isRaced && !this.#everListed.has(String(data.id)))
        return `a leave of ${data.id}, which was never listed`;
      if (type === 'leave') this.copy.delete(String(data.id));
      if (type !== 'enter' && type !== 'change') {
        this.#note(position);
        continue;
      }
      const wrong = this.#wrongInSnapshot(event, data.record);
      if (wrong !== undefined) return wrong;
      if (event.listed !== undefined) this.compared++;
      const shown = list.get(String(data.record.id)) ?? (isRaced ? JSON.stringify(data.record) : undefined);
      if (shown === undefined) return `a ${type} of a record that is hidden now: ${JSON.stringify(data)}`;
      const hidden = Object.keys(data.record).filter((name) => !Object.hasOwn(JSON.parse(shown), name));
      if (Object.hasOwn(data.record, 'secret') && !this.#everShown.has(secretOf(data.record)))
        return `a ${type} with a value that was never shown: ${JSON.stringify(data)}`;
      if (hidden.length > 0 && !isRaced) return `a ${type} with fields that are hidden now: ${hidden}`;
      this.copy.set(String(data.record.id), JSON.stringify(data.record));
      this.#note(position);
    }
    for (const [id, record] of list)
      if (this.copy.get(id) !== record) return `the copy has ${this.copy.get(id)}, the list ${record}`;
    for (const id of this.copy.keys()) if (!list.has(id)) return `the copy has ${id}, the list has not`;
    return undefined;
  }

  #note(position: string): void {
    this.#past = [...this.#past.slice(-MOST_PAST), [position, new Map(this.copy)]];
  }

  #list(): Promise<ListedRecords> {
    const { access } = this.#watching;
    return listOf(this.#grounds.records, { access, filter: this.#filter, members: this.#members });
  }

  /** The difference from the list of the snapshot that the event was read in. */
  #wrongInSnapshot({ type, listed, isExact = false }: NodeEvent, record: Readonly<Record<string, unknown>>) {
    if (listed === undefined) return undefined;
    // A page of several, and a replay, show what is listed when they are sent.
    const id = String(record.id);
    if (listed === null)
      return isExact || !this.#everListed.has(id)
        ? `a ${type} of a record that the list of its snapshot lacks: ${JSON.stringify(record)}`
        : undefined;
    const shown = JSON.parse(listed);
    const hidden = Object.keys(record).filter((name) => !Object.hasOwn(shown, name));
    return isExact && hidden.length > 0
      ? `a ${type} with fields that its snapshot hides: ${hidden} of ${id}`
      : undefined;
  }
}

const secretOf = ({ id, secret }: { readonly id: string; readonly secret?: unknown }): string =>
  `${id} ${secret === undefined ? 'hidden' : JSON.stringify(secret)}`;
