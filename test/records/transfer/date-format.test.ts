import { describe, expect, it } from 'vitest';
import { DateFormat } from '../../../src/records/transfer/date-format.ts';

describe('the form of dates in a file', () => {
  it.each([
    ['DD.MM.YYYY', '31.01.2026', '2026-01-31', '2026-01-31T00:00:00Z'],
    ['M/D/YYYY', '1/2/2026', '2026-01-02', '2026-01-02T00:00:00Z'],
    ['M/D/YYYY', '12/31/2026', '2026-12-31', '2026-12-31T00:00:00Z'],
    ['YYYYMMDD', '20260131', '2026-01-31', '2026-01-31T00:00:00Z'],
    ['D/M/YYYY H:mm', '1/2/2026 9:05', '2026-02-01', '2026-02-01T09:05:00Z'],
    ['[YYYY] MM*DD HH:mm:ss', '[2026] 01*31 23:59:58', '2026-01-31', '2026-01-31T23:59:58Z'],
    // A field finds that the calendar has no such day.
    ['DD.MM.YYYY', '31.02.2026', '2026-02-31', '2026-02-31T00:00:00Z'],
  ])('%s reads %s', (format, text, day, instant) => {
    const made = new DateFormat(format);
    expect([made.read(text, true), made.read(text, false)]).toEqual([day, instant]);
  });

  it.each([
    ['DD.MM.YYYY', '2026-01-31'],
    ['DD.MM.YYYY', '1.1.2026'],
    ['DD.MM.YYYY', '31.01.2026 '],
    ['DD.MM.YYYY', '31a01a2026'],
    ['DD.MM.YYYY', '٣١.٠١.٢٠٢٦'],
  ])('%s does not read %s', (format, text) => {
    expect(new DateFormat(format).read(text, true)).toBeUndefined();
  });

  it.each(['', 'DD.MM', 'DD.MM.YYYY.DD', 'YYYY-MM-DD mm', 'YYYY-MM-DD HH:ss', 'YYYY-MM-M-DD'])(
    '%j is refused',
    (format) => {
      expect(() => new DateFormat(format)).toThrow('--date-format: expected one each of YYYY');
    },
  );
});
