/** A node in a process of its own, which a signal ends while it serves. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { PageBounds } from '../../../src/changes/change-log.ts';
import type { CallerAuth } from './feed-caller.ts';
import type { FeedNode, NodeEvent, NodeStream, Subscription } from './feed-node.ts';

export interface FarStart {
  readonly url: string;
  /** The program, or a copy of it. */
  readonly root: string;
  readonly policies: readonly string[];
  readonly pages: PageBounds | undefined;
  readonly auths: readonly CallerAuth[];
}

export type FarQuestion =
  | ({ readonly type: 'open' } & FarStart)
  | { readonly type: 'subscribe'; readonly key: number; readonly subscription: Subscription }
  | { readonly type: 'leave'; readonly key: number }
  | { readonly type: 'auth'; readonly caller: number; readonly auth: CallerAuth }
  | { readonly type: 'look'; readonly number: number }
  | { readonly type: 'wake' };

export type FarAnswer =
  | { readonly type: 'opened' }
  | { readonly type: 'event'; readonly key: number; readonly event: NodeEvent }
  | { readonly type: 'ended'; readonly key: number }
  | { readonly type: 'looked'; readonly number: number; readonly failures: readonly string[] }
  | { readonly type: 'failed'; readonly error: string };

export class FarNode implements FeedNode {
  readonly failures: string[] = [];
  isDead = false;
  readonly #child: ChildProcess;
  readonly #takers = new Map<number, (event: NodeEvent) => void>();
  readonly #ends = new Map<number, () => void>();
  readonly #looks = new Map<number, () => void>();
  #opened: () => void = () => undefined;
  #count = 0;

  private constructor() {
    this.#child = fork(new URL('far-node-main.ts', import.meta.url), [], { serialization: 'json' });
    this.#child.on('message', (answer: FarAnswer) => this.#take(answer));
    this.#child.on('exit', (code, signal) => this.#fail(`the node ended by itself: ${signal ?? code}`));
    // A message to a process that is ending fails before its `exit` comes.
    this.#child.on('error', (error) => this.#fail(String(error)));
  }

  static async open(start: FarStart): Promise<FarNode> {
    const node = new FarNode();
    const opened = new Promise<void>((resolve) => {
      node.#opened = resolve;
    });
    node.#send({ type: 'open', ...start });
    await opened;
    return node;
  }

  async subscribe(subscription: Subscription, take: (event: NodeEvent) => void): Promise<NodeStream> {
    const key = ++this.#count;
    this.#takers.set(key, take);
    const ended = new Promise<void>((resolve) => this.#ends.set(key, resolve));
    if (this.isDead) this.#endStream(key);
    this.#send({ type: 'subscribe', key, subscription });
    return {
      // A look of this node ends when no stream is behind.
      isBehind: false,
      ended,
      leave: () => {
        this.#takers.delete(key);
        this.#endStream(key);
        this.#send({ type: 'leave', key });
      },
    };
  }

  become(caller: number, auth: CallerAuth): void {
    this.#send({ type: 'auth', caller, auth });
  }

  look(): Promise<void> {
    if (this.isDead) return Promise.resolve();
    const number = ++this.#count;
    this.#send({ type: 'look', number });
    return new Promise((resolve) => this.#looks.set(number, resolve));
  }

  wake(): void {
    this.#send({ type: 'wake' });
  }

  /** Its own readers take everything at once. */
  hold(): () => void {
    return () => undefined;
  }

  /** Ends the process as a power failure would: what was sent last may not have arrived. */
  async kill(): Promise<void> {
    this.#takers.clear();
    this.#end();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  close(): Promise<void> {
    return this.kill();
  }

  #send(question: FarQuestion): void {
    if (!this.isDead && this.#child.connected) this.#child.send(question);
  }

  #take(answer: FarAnswer): void {
    switch (answer.type) {
      case 'opened':
        this.#opened();
        return;
      case 'event':
        this.#takers.get(answer.key)?.(answer.event);
        return;
      case 'ended':
        this.#endStream(answer.key);
        return;
      case 'looked':
        this.failures.push(...answer.failures.slice(this.failures.length));
        this.#looks.get(answer.number)?.();
        this.#looks.delete(answer.number);
        return;
      case 'failed':
        this.#fail(answer.error);
    }
  }

  /** After an end that was asked for, nothing counts as a failure. */
  #fail(error: string): void {
    if (this.isDead) return;
    this.failures.push(error);
    this.#end();
  }

  #endStream(key: number): void {
    this.#ends.get(key)?.();
    this.#ends.delete(key);
  }

  #end(): void {
    this.isDead = true;
    this.#opened();
    for (const key of this.#ends.keys()) this.#endStream(key);
    for (const resolve of this.#looks.values()) resolve();
    this.#looks.clear();
  }
}
