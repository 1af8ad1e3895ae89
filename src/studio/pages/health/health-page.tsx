/** The state of the service, drawn for the time in which the page is open. */
import type { JSX } from 'preact';
import type { ServiceStatus } from '../../../service-status.ts';
import { wording } from '../../en.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { LineChart } from './line-chart.tsx';
import { requestsPerSecond, slowestOf, type TimedStatus, useStatus } from './status-answer.ts';

export function HealthPage(): JSX.Element {
  const { answers, problem } = useStatus();
  const newest = answers.at(-1)?.status;
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.health}</h1>
      {problem !== undefined && <ProblemNote problem={problem} />}
      {newest === undefined && problem === undefined && <p class="loading">{wording.loading}</p>}
      {newest !== undefined && (
        <>
          <DrawnFigures answers={answers} />
          <PlainFigures status={newest} />
          <RateTable status={newest} />
          <WarningList status={newest} />
        </>
      )}
    </main>
  );
}

const mebibytes = (bytes: number): number => bytes / 2 ** 20;
const shownMebibytes = (size: number): string => `${size.toLocaleString(undefined, { maximumFractionDigits: 0 })} MiB`;
const shownMs = (ms: number): string => `${ms.toLocaleString(undefined, { maximumFractionDigits: 1 })} ms`;
const shownRate = (rate: number): string => `${rate.toLocaleString(undefined, { maximumFractionDigits: 2 })} /s`;
const shownDuration = (seconds: number): string =>
  [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
  ]
    .filter(([count]) => count !== 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ') || `${seconds} s`;

type ShownFigure = readonly [
  name: string,
  figureOf: (status: ServiceStatus) => number,
  shown: (value: number) => string,
];
const DRAWN_FIGURES: readonly ShownFigure[] = [
  [wording.requestRate, requestsPerSecond, shownRate],
  [wording.slowest, slowestOf, shownMs],
  [wording.lag, ({ event_loop_lag_ms: lag }) => lag ?? 0, shownMs],
  [wording.memory, ({ memory_bytes: bytes }) => mebibytes(bytes ?? 0), shownMebibytes],
];

function DrawnFigures({ answers }: { readonly answers: readonly TimedStatus[] }): JSX.Element {
  const times = answers.map(({ at }) => at);
  return (
    <dl class="figures drawn">
      {DRAWN_FIGURES.map(([name, figureOf, shown]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <LineChart name={name} shown={shown} series={[times, answers.map(({ status }) => figureOf(status))]} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function PlainFigures({ status }: { readonly status: ServiceStatus }): JSX.Element {
  const { database, version, workers, ready: isReady, feeds, queues, policy_cache: cache } = status;
  const plain: readonly (readonly [string, string])[] = [
    [wording.state, isReady ? wording.ready : wording.notReady],
    [wording.versionWord, `bylaw ${version}, ${wording.workers}: ${workers}, ${shownDuration(status.uptime_seconds)}`],
    [wording.database, `${database.kind} ${database.version}, ${shownMebibytes(mebibytes(database.bytes))}`],
    [wording.feeds, `${wording.streams}: ${feeds.streams ?? 0}, ${wording.logEntries}: ${feeds.log_entries ?? 0}`],
    [wording.queues, `${wording.waitingTasks}: ${queues.tasks ?? 0}, ${wording.waitingMails}: ${queues.mails ?? 0}`],
    [wording.policyCache, `${wording.entries}: ${cache.entries ?? 0}, ${wording.madeEntries}: ${cache.made ?? 0}`],
    [wording.mail, status.mail_to === 'smtp' ? wording.smtp : wording.mailFolder],
  ];
  return (
    <dl class="figures">
      {plain.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function RateTable({ status: { requests } }: { readonly status: ServiceStatus }): JSX.Element {
  const titles = [wording.route, wording.requests, wording.failures, wording.rate, 'p50', 'p99'];
  return (
    <section>
      <h2>{`${wording.routes}, ${wording.lastSeconds} ${shownDuration(Math.round(requests.seconds))}`}</h2>
      {requests.routes.length === 0 && <p class="empty">{wording.noRequests}</p>}
      {requests.routes.length > 0 && (
        <ScrollTable label={wording.routes} class="rates" titles={titles}>
          {requests.routes.map(({ method, route, requests: count, failures, per_second: rate, ...times }) => (
            <tr key={`${method} ${route}`}>
              <th scope="row">
                <code>{`${method} ${route}`}</code>
              </th>
              <td>{count}</td>
              <td class={failures > 0 ? 'bad' : undefined}>{failures}</td>
              <td>{shownRate(rate)}</td>
              <td>{shownMs(times.p50_ms)}</td>
              <td>{shownMs(times.p99_ms)}</td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </section>
  );
}

function WarningList({ status: { warnings } }: { readonly status: ServiceStatus }): JSX.Element {
  return (
    <section>
      <h2>{wording.schemaWarnings}</h2>
      {warnings.length === 0 && <p class="hint">{wording.noWarnings}</p>}
      <ul class="warnings">
        {warnings.map(({ code, line, message }) => (
          <li key={`${line} ${code}`}>
            <code>{`${wording.line} ${line}`}</code> {message} <code>{code}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}
