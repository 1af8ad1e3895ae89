/** Milliseconds of the processor that the work of this thread takes: other processes and threads cannot lengthen them. */
export function processorTimeOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
