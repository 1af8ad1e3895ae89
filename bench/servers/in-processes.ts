/** Processes that share one address, as node:cluster makes them. */
import cluster from 'node:cluster';

/** The first process serves nothing where there are more, and prints their address once all listen. */
export async function inProcesses(count: number, serve: () => Promise<void>): Promise<void> {
  if (count === 1 || cluster.isWorker) return serve();
  let listening = 0;
  cluster.on('listening', (_worker, { address, port }) => {
    if (++listening === count) console.log(`listening on http://${address}:${port}`);
  });
  // Figures of those that are left would be of another server.
  cluster.on('exit', () => process.exit(1));
  for (let i = 0; i < count; i++) cluster.fork();
}
