/** The processor time of other processes, from /proc: sturdier than requests a second on a machine that others use too. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** Microseconds of a tick of /proc: every Linux that Node runs on counts a hundred a second. */
const TICK_US = 10_000;

interface ProcessStat {
  readonly parent: number;
  /** The time of the process, and of its children that have ended. */
  readonly us: number;
}

function statOf(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // After the name, which may hold spaces: state, parent, …, utime, stime, cutime, cstime.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0);
    return { parent: Number(fields[1]), us: ticks * TICK_US };
  } catch {
    return undefined;
  }
}

export const parentOf = (pid: number): number | undefined => statOf(pid)?.parent;

/**
 * The processor time of a process and its descendants. Microseconds; NaN without /proc.
 */
export function processorTime(root: number): number {
  const stats = statsOfAll();
  let us = stats === undefined ? Number.NaN : 0;
  for (const pid of familyOf(root, stats ?? new Map())) us += stats?.get(pid)?.us ?? 0;
  return us;
}

/** Resident memory of a process and all that it started. MiB. */
export function residentMiB(root: number): number {
  let kib = 0;
  for (const pid of familyOf(root, statsOfAll() ?? new Map())) {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    kib += Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  }
  return kib / 1024;
}

function statsOfAll(): ReadonlyMap<number, ProcessStat> | undefined {
  try {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return new Map(pids.flatMap((pid) => [[Number(pid), statOf(Number(pid))] as const]).filter(isThere));
  } catch {
    return undefined;
  }
}

const isThere = (entry: readonly [number, ProcessStat | undefined]): entry is readonly [number, ProcessStat] =>
  entry[1] !== undefined;

function familyOf(root: number, stats: ReadonlyMap<number, ProcessStat>): ReadonlySet<number> {
  const family = new Set([root]);
  for (let size = 0; size !== family.size; ) {
    size = family.size;
    for (const [pid, { parent }] of stats) if (family.has(parent)) family.add(pid);
  }
  return family;
}
