/** The log of `bylaw dev` on a terminal: lines of JSON become lines for people. */
import { styleText } from 'node:util';
import type { LogLines } from '../../http/observe/log.ts';
import type { Io } from '../support/command.ts';
import { escapedCharacter, printable } from '../support/printable.ts';

type Style = Parameters<typeof styleText>[0];
type LogEntry = Readonly<Record<string, unknown>>;

const LEVELS: Readonly<Record<string, Style>> = { info: 'green', warn: 'yellow', error: 'red', fatal: 'red' };
/** Keys that every line has, or that have their own position in it. */
const PLACED = new Set([
  'level',
  'time',
  'pid',
  'msg',
  'method',
  'path',
  'status',
  'ms',
  'request_id',
  'address',
  'text',
]);

/** Uses colours unless NO_COLOR is set. */
export function terminalLog({ stderr, env }: Io): LogLines {
  const paint = (style: Style, text: string): string =>
    env.NO_COLOR === undefined || env.NO_COLOR === '' ? styleText(style, text, { validateStream: false }) : text;
  return { write: (line) => void stderr.write(`${devLogLine(line, paint)}\n`) };
}

type Paint = (style: Style, text: string) => string;

export function devLogLine(line: string, paint: Paint): string {
  const entry = JSON.parse(line) as LogEntry;
  const time = paint('gray', String(entry.time).slice(11, 19));
  return entry.msg === 'request' ? `${time} ${requestLine(entry, paint)}` : `${time} ${messageLine(entry, paint)}`;
}

function requestLine(entry: LogEntry, paint: Paint): string {
  const status = Number(entry.status);
  const style: Style = status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green';
  const user = entry.user === undefined ? '' : ` user ${entry.user}`;
  return (
    `${paint(style, String(status))} ${paint('bold', printableValue(entry.method).padEnd(6))} ${printableValue(entry.path)} ` +
    paint('gray', `${entry.ms} ms${user}`)
  );
}

/** A text of several lines (`text`) follows below its message. */
function messageLine(entry: LogEntry, paint: Paint): string {
  const level = String(entry.level);
  const rest = Object.entries(entry).filter(([name]) => !PLACED.has(name));
  const details = rest.map(([name, value]) => paint('gray', ` ${name}=${printableValue(value)}`)).join('');
  const text = entry.text === undefined ? '' : `\n${indentedText(String(entry.text))}`;
  return `${paint(LEVELS[level] ?? 'white', level.padEnd(5))} ${printableValue(entry.msg)}${details}${text}`;
}

const indentedText = (text: string): string =>
  text
    .trimEnd()
    .replaceAll(/[^\P{Cc}\n]|\p{Cf}/gu, escapedCharacter)
    .replaceAll(/^/gm, '    ');

const printableValue = (value: unknown): string =>
  printable(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
