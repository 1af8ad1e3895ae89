/** The metrics of mails. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { MailObserver } from '../../auth/auth.ts';

export interface MailMetrics extends MailObserver {
  /** `size`: the requests that wait. */
  readonly watchQueue: (size: () => Promise<number>) => void;
}

export function mailMetrics(registry: Registry): MailMetrics {
  let queueSize = async (): Promise<number> => 0;
  const registers = [registry];
  const mails = new Counter({
    name: 'bylaw_mail_total',
    help: 'Attempts to send a mail: `skipped` had no account or were too many for an address, `expired` had failed for a day.',
    labelNames: ['kind', 'result'],
    registers,
  });
  new Gauge({
    name: 'bylaw_mail_queue',
    help: 'Mails that wait to be sent, on all nodes together.',
    // Each worker counts the same rows.
    aggregator: 'max',
    registers,
    async collect() {
      // The other metrics are read also while the database is away.
      const size = await queueSize().catch(() => undefined);
      if (size !== undefined) this.set(size);
    },
  });
  return {
    onMail: (kind, result) => mails.inc({ kind, result }),
    watchQueue: (size) => {
      queueSize = size;
    },
  };
}
