/** The answer of `GET /api/_status`, as the service sends it and the studio reads it. A leaf. */

export interface ServiceStatus {
  readonly version: string;
  readonly uptime_seconds: number;
  readonly workers: number;
  readonly ready: boolean;
  readonly database: { readonly kind: string; readonly version: string; readonly bytes: number };
  readonly event_loop_lag_ms: number | null;
  readonly memory_bytes: number | null;
  readonly requests: RouteRates;
  /** The tasks that wait for a place, and the mails that wait to be sent. */
  readonly queues: { readonly tasks: number | null; readonly mails: number | null };
  /** Rules that are kept as they concern a kind of caller, and how many were made so far. */
  readonly policy_cache: { readonly entries: number | null; readonly made: number | null };
  readonly feeds: { readonly streams: number | null; readonly log_entries: number | null };
  readonly mail_to: 'smtp' | 'folder';
  readonly warnings: readonly { readonly code: string; readonly line: number; readonly message: string }[];
}

export interface RouteRates {
  /** The length of the time that the rates are about. */
  readonly seconds: number;
  readonly routes: readonly RouteRate[];
}

export interface RouteRate {
  readonly method: string;
  readonly route: string;
  readonly requests: number;
  /** Answers with a status from 500 up. */
  readonly failures: number;
  readonly per_second: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}
