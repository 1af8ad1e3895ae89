/** The connections that `fetch` keeps open for its next request. */
interface Agent {
  close(): Promise<void>;
}
/** The place where Node.js keeps the agent of `fetch`, once one was sent. */
const AGENT = Symbol.for('undici.globalDispatcher.1');

/** A server that is asked to stop serves on for 2 s while a client keeps a connection. Running requests finish. */
export function closeKeptConnections(): void {
  const holder = globalThis as { [AGENT]?: Agent };
  const agent = holder[AGENT];
  if (agent === undefined) return;
  holder[AGENT] = new (agent.constructor as new () => Agent)();
  void agent.close();
}
