/** A JSON object a line. */
import type { SourceRecord } from '../../../records/transfer/read-record.ts';
import { type Chunks, type RecordWriter, recordOfJson } from './record.ts';

export const ndjsonWriter: RecordWriter = { head: '', record: (json) => `${json}\n`, tail: () => '' };

/** Blank lines are skipped. */
export async function* ndjsonReader(chunks: Chunks): AsyncGenerator<SourceRecord> {
  let line = 0;
  for await (const text of textLines(chunks)) {
    line++;
    if (text.trim() !== '') yield recordOfJson(text, line);
  }
}

async function* textLines(chunks: Chunks): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}
