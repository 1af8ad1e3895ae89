/**
 * The commands that a node of a cluster sends to others, and those that it executes itself on shards that it has, as Citus or the client
 * names them: by its own log, which it sends to each client as notices.
 */
import pg from 'pg';
import type { Database } from '../../src/database/contract.ts';
import { raw } from '../../src/sql.ts';

/** Connections that are opened from now on log. */
export const logged = (url: string): string => {
  const [base, options = ''] = url.split('options=');
  const settings =
    '-c citus.log_remote_commands=on -c citus.log_local_commands=on -c log_statement=all -c client_min_messages=log';
  const all = [decodeURIComponent(options), settings].join(' ').trim();
  return `${base}${base!.includes('?') ? '' : '?'}options=${encodeURIComponent(all)}`;
};

interface Notice {
  readonly message?: string;
}

export interface RemoteCommand {
  readonly text: string;
  /** The port of the node that the client asked. */
  readonly asked: number;
  /** The node that was asked has the shard. */
  readonly isLocal: boolean;
}

export interface Reached {
  /** Parts of the tenants, of which each is on one machine. */
  readonly shards: number;
  readonly commands: number;
  readonly isPrepared: boolean;
  /** The nodes that clients asked for rows of a tenant. */
  readonly asked: readonly number[];
  /** A node had to ask another one. */
  readonly isForwarded: boolean;
}

const SHARD = /_(\d{6,})\b/g;

export class RemoteCommands {
  readonly #parts: ReadonlyMap<string, string>;
  #commands: RemoteCommand[] = [];
  readonly #undo: () => void;

  private constructor(parts: ReadonlyMap<string, string>) {
    this.#parts = parts;
    const { emit } = pg.Client.prototype;
    const take = (command: RemoteCommand): void => void this.#commands.push(command);
    pg.Client.prototype.emit = function (this: pg.Client, name: string | symbol, ...rest: unknown[]): boolean {
      if (name === 'notice') noteCommand(rest[0] as Notice | undefined, this.port, take);
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
    const partsOf = ({ text }: RemoteCommand): readonly string[] =>
      [...text.matchAll(SHARD)].flatMap(([, shard]) => this.#parts.get(shard!) ?? []);
    const ofTenants = commands.filter((each) => partsOf(each).length > 0);
    return {
      shards: new Set(ofTenants.flatMap(partsOf)).size,
      commands: commands.length,
      isPrepared: commands.some(({ text }) => text.includes('PREPARE TRANSACTION')),
      asked: [...new Set(ofTenants.map(({ asked }) => asked))],
      isForwarded: ofTenants.some(({ isLocal }) => !isLocal),
    };
  }

  stop(): void {
    this.#undo();
  }
}

function noteCommand(notice: Notice | undefined, asked: number, take: (command: RemoteCommand) => void): void {
  const [, kind, text] =
    /^(issuing|executing the command locally:|execute [^:]+:) (.*)$/s.exec(notice?.message ?? '') ?? [];
  // A statement of the client's own reaches shards where it names them.
  if (text === undefined || (kind!.startsWith('execute ') && text.search(SHARD) < 0)) return;
  take({ text, asked, isLocal: kind !== 'issuing' });
}
