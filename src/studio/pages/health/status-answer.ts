/** The answer of `GET /api/_status`, asked again and again while a page is open. */
import { useEffect, useState } from 'preact/hooks';
import type { ServiceStatus } from '../../../service-status.ts';
import { noteProblem } from '../../app/session-state.ts';
import { transport } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';

const EVERY_MS = 5_000;
/** An hour. */
const MOST_KEPT = 720;

export interface TimedStatus {
  /** Seconds since 1970. */
  readonly at: number;
  readonly status: ServiceStatus;
}

/** The answers so far, the oldest first. */
export function useStatus() {
  const [answers, setAnswers] = useState<readonly TimedStatus[]>([]);
  const [problem, setProblem] = useState<ShownProblem>();
  useEffect(() => {
    let isOpen = true;
    const ask = async (): Promise<void> => {
      if (document.hidden) return;
      try {
        const { data } = await transport.json<{ readonly data: ServiceStatus }>('/api/_status');
        if (!isOpen) return;
        setAnswers((before) => [...before.slice(1 - MOST_KEPT), { at: Date.now() / 1_000, status: data }]);
        setProblem(undefined);
      } catch (error) {
        if (isOpen) setProblem(noteProblem(error));
      }
    };
    void ask();
    const timer = setInterval(() => void ask(), EVERY_MS);
    return () => {
      isOpen = false;
      clearInterval(timer);
    };
  }, []);
  return { answers, problem };
}

export const requestsPerSecond = ({ requests }: ServiceStatus): number =>
  requests.routes.reduce((sum, { per_second: rate }) => sum + rate, 0);

/** The slowest p99 of a route with a hundredth of all requests at least. Milliseconds. */
export function slowestOf({ requests: { routes } }: ServiceStatus): number {
  const all = routes.reduce((sum, { requests }) => sum + requests, 0);
  return Math.max(0, ...routes.filter(({ requests }) => requests * 100 >= all).map(({ p99_ms: ms }) => ms));
}
