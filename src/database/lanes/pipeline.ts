/**
 * SELECTs over a few connections on which statements are sent without waiting for the answers
 * before them. A statement that does not answer soon keeps its connection for itself: another one
 * takes its place, and what stood behind it is sent again there. A SELECT that a loss caught is
 * asked once more.
 */
import type pg from 'pg';
import { invariant } from '../../invariant.ts';
import type { Sql } from '../../sql.ts';
import { type Cells, QueueFull, StoreError } from '../contract.ts';
import { isConnectionLoss, isStalePlan, isTransient, toStoreError } from '../to-store-error.ts';
import { type Asked, type Group, Line } from './pipelined-connection.ts';
import { QuickTexts } from './quick-texts.ts';
import type { SlowShapes } from './slow-shapes.ts';
import type { Statements } from './statements.ts';

/** Statements that wait on one connection. Above it, an answer would come too late to be of use. */
const MAX_PENDING = 2_000;
/** Milliseconds that a statement may keep others waiting. */
const PATIENCE_MS = 20;
/** The same where no more connections may be kept. */
const LAST_PATIENCE_MS = 100;
/**
 * Statements of a turn of the event loop that one connection gets before another does: a write to it costs more than a short
 * read, on both sides.
 */
const MOST_GATHERED = 4;
const TICK_MS = 10;
/** A tick that comes later than this shows that the program was held up, not the database. */
const LATE_MS = 5;
/** What a withdrawal counts as in the average of a shape: two in a row make it slow. */
const WITHDRAWN_MS = 45;
const EVICTED_MS = 300;
/** For each connection that may be kept. */
const MOST_ABANDONED = 4;

export interface PipelineOptions {
  readonly connect: () => Promise<pg.Client>;
  readonly statements: Statements;
  readonly shapes: SlowShapes;
  /** Connections that are shared. */
  readonly size: number;
  /** Connections that slow statements may keep for themselves besides. */
  readonly mostPrivate: number;
  /** Milliseconds after which a connection that does not answer is given up. */
  readonly deadlineMs: number;
  /** Takes a slow statement when no more connections may be kept. Without it, the others wait. */
  readonly overflow?: (statement: Sql) => Promise<readonly Cells[]>;
}

interface Slot {
  /** Statements that wait for the connection to be made. */
  queued: number;
  line: Line | undefined;
  connecting: Promise<Line> | undefined;
}

export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #slots: readonly Slot[];
  readonly #privates = new Set<Line>();
  readonly #quick = new QuickTexts();
  /** Statements that the server may still be at work on, though nobody waits for them. */
  #abandoned = 0;
  #timer: NodeJS.Timeout | undefined;
  #nextTick = 0;
  #closed = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.size }, () => ({ queued: 0, line: undefined, connecting: undefined }));
  }

  rows(statement: Sql): Promise<readonly Cells[]> {
    invariant(isRead(statement), 'only SELECTs can be asked twice');
    return new Promise((resolve, reject) => {
      this.#dispatch({
        statement,
        lines: 0,
        losses: 0,
        isDone: false,
        resolve: ({ rows }) => resolve(rows),
        reject,
      });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const lines = this.#slots.map(async (slot) => slot.line ?? (await slot.connecting?.catch(() => undefined)));
    await Promise.all([...lines, ...this.#privates].map(async (line) => (await line)?.end()));
  }

  #dispatch(asked: Asked): void {
    const isQuick = this.#quick.has(asked.statement.text);
    const slot = this.#gathering() ?? this.#leastBusy();
    if (pendingOf(slot) >= MAX_PENDING) {
      asked.reject(new QueueFull(1_000));
      return;
    }
    this.#watch();
    asked.lines++;
    if (slot.line === undefined) void this.#sendOnceConnected(slot, asked);
    else slot.line.send(asked, isQuick);
  }

  async #sendOnceConnected(slot: Slot, asked: Asked): Promise<void> {
    slot.queued++;
    try {
      const line = await this.#connect(slot);
      slot.queued--;
      line.send(asked, false);
    } catch (error) {
      slot.queued--;
      asked.lines--;
      this.#fail(asked, error);
    }
  }

  /** A connection that others of this turn are sent on, if there is room for one more. */
  #gathering(): Slot | undefined {
    return this.#slots.find(({ line }) => line !== undefined && line.unsent > 0 && line.unsent < MOST_GATHERED);
  }

  #leastBusy(): Slot {
    let best = this.#slots[0]!;
    for (const slot of this.#slots) if (pendingOf(slot) < pendingOf(best)) best = slot;
    return best;
  }

  #connect(slot: Slot): Promise<Line> {
    slot.connecting ??= this.#open(slot).finally(() => {
      slot.connecting = undefined;
    });
    return slot.connecting;
  }

  async #open(slot: Slot): Promise<Line> {
    if (this.#closed) throw new StoreError('unavailable', undefined, new Error('the database is closed'));
    const client = await this.#options.connect();
    const line = new Line(client, this.#options.statements, {
      answered: (from, group, took) => this.#answered(from, group, took),
      failed: (from, asked, { error, isBeside, took }) => {
        if (!isBeside) this.#options.shapes.note(asked.statement.text, took);
        this.#quick.forget(asked.statement.text);
        if (isConnectionLoss(error) || isStalePlan(error)) this.#discard(from);
        else this.#releaseIdle(from);
        if (!isBeside) this.#fail(asked, error);
        else if (!asked.isDone) this.#dispatch(asked);
      },
    });
    client.on('error', () => this.#discard(line));
    client.on('end', () => this.#discard(line));
    slot.line = line;
    return line;
  }

  #answered(line: Line, group: Group, took: number): void {
    for (const asked of group) asked.isDone = true;
    if (group.length === 1) {
      const { text } = group[0]!.statement;
      this.#options.shapes.note(text, took);
      this.#quick.note(text, took);
    } else for (const { statement } of group) this.#quick.noteTogether(statement.text, took);
    this.#releaseIdle(line);
  }

  #fail(asked: Asked, error: unknown): void {
    // Another line still has it.
    if (asked.isDone || asked.lines > 0) return;
    const mayRetry = !this.#closed && asked.losses === 0 && (isConnectionLoss(error) || isTransient(error));
    if (mayRetry) {
      asked.losses++;
      this.#dispatch(asked);
      return;
    }
    asked.isDone = true;
    asked.reject(toStoreError(error));
  }

  /** A private line that is idle is shared again where one is missing. */
  #releaseIdle(line: Line): void {
    if (!line.isPrivate || line.pending > 0) return;
    this.#privates.delete(line);
    const place = this.#slots.find((slot) => slot.line === undefined && slot.connecting === undefined);
    if (place === undefined || this.#closed) {
      line.end().catch(() => undefined);
      return;
    }
    line.isPrivate = false;
    place.line = line;
  }

  /** What is under way on it still gets its answer or its error; new statements go elsewhere. */
  #discard(line: Line): void {
    this.#privates.delete(line);
    for (const slot of this.#slots) if (slot.line === line) slot.line = undefined;
    line.end().catch(() => undefined);
  }

  // ---------------------------------------------------------------- waiting

  #watch(): void {
    if (this.#timer !== undefined) return;
    this.#nextTick = performance.now() + TICK_MS;
    this.#timer = setTimeout(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    this.#timer = undefined;
    const now = performance.now();
    const late = now - this.#nextTick;
    const lines = [...this.#slots.flatMap(({ line }) => line ?? []), ...this.#privates];
    if (late > LATE_MS) for (const line of lines) line.forgive(late);
    else for (const line of lines) this.#look(line, now);
    if (lines.some(({ pending }) => pending > 0) || this.#slots.some(({ queued }) => queued > 0)) this.#watch();
  }

  #look(line: Line, now: number): void {
    const { deadlineMs, mostPrivate, overflow } = this.#options;
    const age = line.headAge(now);
    if (age > deadlineMs) line.destroy();
    if (age < PATIENCE_MS || line.isPrivate) return;
    if (this.#privates.size < mostPrivate) this.#withdraw(line);
    else if (age > LAST_PATIENCE_MS && overflow !== undefined && this.#abandoned < MOST_ABANDONED * mostPrivate)
      this.#evict(line, overflow);
  }

  /** The first statement keeps the line; what is behind it goes elsewhere. */
  #withdraw(line: Line): void {
    this.#take(line);
    const slow = this.#sendBehind(line);
    if (slow !== undefined) this.#options.shapes.note(slow.statement.text, WITHDRAWN_MS);
    this.#privates.add(line);
  }

  /** Too many lines are kept: the statement starts again where slow ones wait for each other. */
  #evict(line: Line, overflow: Overflow): void {
    this.#take(line);
    const slow = this.#sendBehind(line);
    if (slow !== undefined) {
      this.#options.shapes.note(slow.statement.text, EVICTED_MS);
      if (!slow.isDone) hand(slow, overflow);
    }
    line.destroy();
    this.#abandoned++;
    setTimeout(() => this.#abandoned--, this.#options.deadlineMs).unref();
  }

  /**
   * Gives the statement that holds the line up, and sends the others elsewhere. Where it is one of several that were sent
   * together, each of them is sent alone, which shows the slow one.
   */
  #sendBehind(line: Line): Asked | undefined {
    const { first, behind } = line.withdraw();
    const isGroup = first.length > 1;
    if (isGroup) for (const { statement } of first) this.#quick.forget(statement.text);
    for (const asked of isGroup ? [...first, ...behind] : behind) if (!asked.isDone) this.#sendElsewhere(asked);
    return isGroup ? undefined : first[0];
  }

  #take(line: Line): void {
    for (const slot of this.#slots) if (slot.line === line) slot.line = undefined;
  }

  #sendElsewhere(asked: Asked): void {
    const { overflow, shapes } = this.#options;
    const isSlow = shapes.speedOf(asked.statement.text) !== 'fast';
    if (isSlow && overflow !== undefined) hand(asked, overflow);
    else this.#dispatch(asked);
  }
}

type Overflow = NonNullable<PipelineOptions['overflow']>;

/** Its outcome on any line no longer matters. */
function hand(asked: Asked, overflow: Overflow): void {
  asked.isDone = true;
  overflow(asked.statement).then(
    (rows) => asked.resolve({ rows, count: rows.length, hasWritten: false }),
    asked.reject,
  );
}

const pendingOf = ({ queued, line }: Slot): number => queued + (line?.pending ?? 0);

/** By its first word; our statements are not `SELECT … INTO`. */
export function isRead(statement: Sql): boolean {
  return /^\s*(?:SELECT|EXPLAIN)\b/i.test(statement.text);
}
