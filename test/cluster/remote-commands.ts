/** The commands that a coordinator sends to its workers, by its own log, which it sends to each client as notices. */
import pg from 'pg';
import type { Database } from '../../src/database/contract.ts';
import { raw } from '../../src/sql.ts';

/** Connections that are opened from now on log. */
export const logged = (url: string): string => {
  const [base, options = ''] = url.split('options=');
  const settings = '-c citus.log_remote_commands=on -c client_min_messages=notice';
  const all = [decodeURIComponent(options), settings].join(' ').trim();
  return `${base}${base!.includes('?') ? '' : '?'}options=${encodeURIComponent(all)}`;
};

interface Notice {
  readonly message?: string;
  readonly detail?: string;
}

export interface RemoteCommand {
  readonly text: string;
  readonly server: string;
}

export interface Reached {
  /** Parts of the tenants, of which each is on one machine. */
  readonly shards: number;
  readonly commands: number;
  readonly isPrepared: boolean;
}

export class RemoteCommands {
  readonly #parts: ReadonlyMap<string, string>;
  #commands: RemoteCommand[] = [];
  readonly #undo: () => void;

  private constructor(parts: ReadonlyMap<string, string>) {
    this.#parts = parts;
    const { emit } = pg.Client.prototype;
    const take = (command: RemoteCommand): void => void this.#commands.push(command);
    pg.Client.prototype.emit = function (this: pg.Client, name: string | symbol, ...rest: unknown[]): boolean {
      if (name === 'notice') noteCommand(rest[0] as Notice | undefined, take);
      return emit.call(this, name as never, ...(rest as never[]));
    } as typeof emit;
    this.#undo = () => {
      pg.Client.prototype.emit = emit;
    };
  }

  /** Listens to every client of this process. */
  static async of(db: Database): Promise<RemoteCommands> {
    // Shards of one range of hashes are together.
    const rows = await db.rows(raw('SELECT shardid, shardminvalue FROM pg_dist_shard WHERE shardminvalue IS NOT NULL'));
    return new RemoteCommands(new Map(rows.map(([shard, from]) => [shard!, from!])));
  }

  /** The commands since the last call. */
  take(): readonly RemoteCommand[] {
    const taken = this.#commands;
    this.#commands = [];
    return taken;
  }

  reached(commands: readonly RemoteCommand[]): Reached {
    const parts = commands.flatMap(({ text }) =>
      [...text.matchAll(/_(\d{6,})\b/g)].flatMap(([, shard]) => this.#parts.get(shard!) ?? []),
    );
    const isPrepared = commands.some(({ text }) => text.includes('PREPARE TRANSACTION'));
    return { shards: new Set(parts).size, commands: commands.length, isPrepared };
  }

  stop(): void {
    this.#undo();
  }
}

function noteCommand(notice: Notice | undefined, take: (command: RemoteCommand) => void): void {
  const text = /^issuing (.*)$/s.exec(notice?.message ?? '')?.[1];
  if (text !== undefined) take({ text, server: notice?.detail ?? '' });
}
