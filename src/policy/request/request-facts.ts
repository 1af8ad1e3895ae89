/** The facts of a request that policies read beside its caller, and how each is read. */
import type { ScalarType } from '../scalar-types.ts';
import { CALLER_KINDS, type PolicyRequest, type RequestOperand } from '../types.ts';
import { dayOf, UTC } from '../values.ts';
import { isInNetwork, parseAddress, parseNetwork } from './networks.ts';

interface RequestFact {
  readonly type: ScalarType;
  /** The only values; undefined: any of the type. */
  readonly values?: ReadonlySet<string | number>;
  /** The value depends on the time zone of the schema. */
  readonly isLocal?: true;
  /** Undefined where the request has none. */
  of(request: PolicyRequest, zone: string): unknown;
}

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);
const REQUEST_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** The keys are paths without their `@`. */
export const REQUEST_FACTS: ReadonlyMap<string, RequestFact> = new Map<string, RequestFact>([
  ['request.ip', { type: 'string', of: ({ facts }) => facts?.ip }],
  ['request.method', { type: 'string', values: new Set(REQUEST_METHODS), of: ({ facts }) => facts?.method }],
  ['request.origin', { type: 'string', of: ({ facts }) => facts?.origin }],
  ['request.kind', { type: 'string', values: new Set(CALLER_KINDS), of: ({ kind = 'user' }) => kind }],
  ['now.hour', { type: 'int', values: new Set(HOURS), isLocal: true, of: ({ now }, zone) => hourOf(now, zone) }],
  [
    'now.weekday',
    { type: 'int', values: new Set([1, 2, 3, 4, 5, 6, 7]), isLocal: true, of: ({ now }, zone) => weekdayOf(now, zone) },
  ],
]);
/** The fact that has tests of networks in place of comparisons. */
export const ADDRESS_FACT = 'request.ip';

/** The reader of a fact: its value, or for a test of networks, whether the address is in one of them. */
export function factReaderOf({ name, detail }: RequestOperand): (request: PolicyRequest) => unknown {
  const fact = REQUEST_FACTS.get(name)!;
  if (name !== ADDRESS_FACT || detail === undefined) return (request) => fact.of(request, detail ?? UTC);
  const networks = detail.split(' ').flatMap((text) => parseNetwork(text) ?? []);
  return (request) => {
    const address = parseAddress(String(fact.of(request, UTC)));
    return address && networks.some((network) => isInNetwork(address, network));
  };
}

const hourFormats = new Map<string, Intl.DateTimeFormat>();

function hourOf(instant: string, zone: string): number {
  if (zone === UTC) return Number(instant.slice(11, 13));
  const format =
    hourFormats.get(zone) ?? new Intl.DateTimeFormat('en-US', { timeZone: zone, hour: '2-digit', hourCycle: 'h23' });
  hourFormats.set(zone, format);
  return Number(format.format(Date.parse(instant)));
}

/** ISO 8601: 1 is Monday, 7 is Sunday. */
const weekdayOf = (instant: string, zone: string): number =>
  new Date(`${dayOf(instant, zone)}T00:00:00Z`).getUTCDay() || 7;
