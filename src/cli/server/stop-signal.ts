/** The signals that stop a service. */

/** Milliseconds. Ctrl-C in a shell and some supervisors send two signals at once. */
const SAME_SIGNAL_MS = 1_000;

/**
 * The first signal asks the service to stop; another one, a second later, ends the process at once.
 */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let since: number | undefined;
    const onSignal = (): void => {
      if (since !== undefined && performance.now() - since > SAME_SIGNAL_MS) process.exit(1);
      since ??= performance.now();
      resolve();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
