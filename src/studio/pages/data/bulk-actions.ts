/** Writes of several records, in batches. A record that fails is left out and listed; the others are written. */
import { type BylawError, isBylawError } from '../../../client/client.ts';
import { service } from '../../data/api-service.ts';
import { exportedLines } from './found-records.ts';
import type { StudioRecord } from './record-query.ts';

type StudioRecordId = StudioRecord['id'];

export interface BulkOutcome {
  readonly written: readonly StudioRecordId[];
  readonly failed: readonly { readonly id: StudioRecordId; readonly text: string }[];
}

const BATCH = 100;

/** @param data absent: the records are deleted. Throws BylawError of another cause than one record. */
export async function writeEach(
  collection: string,
  ids: readonly StudioRecordId[],
  data?: Readonly<Record<string, unknown>>,
): Promise<BulkOutcome> {
  const written: StudioRecordId[] = [];
  const failed: { id: StudioRecordId; text: string }[] = [];
  for (let from = 0; from < ids.length; from += BATCH) {
    let batch = ids.slice(from, from + BATCH);
    while (batch.length > 0) {
      const error = await recordFailure(collection, batch, data);
      if (error === undefined) break;
      const { operation, message, errors } = error;
      if (operation === undefined || batch[operation] === undefined) throw error;
      failed.push({ id: batch[operation], text: errors[0]?.detail ?? message });
      batch = batch.toSpliced(operation, 1);
    }
    written.push(...batch);
  }
  return { written, failed };
}

/** A batch is written whole or not at all. */
async function recordFailure(
  collection: string,
  ids: readonly StudioRecordId[],
  data: Readonly<Record<string, unknown>> | undefined,
): Promise<BylawError | undefined> {
  const operations = ids.map((id) =>
    data === undefined
      ? ({ op: 'delete', collection, id } as const)
      : ({ op: 'update', collection, id, data } as const),
  );
  try {
    await service.batch(operations);
    return undefined;
  } catch (error) {
    if (isBylawError(error)) return error;
    throw error;
  }
}

/** The records as a file, a line of JSON for each. */
export function saveRecords(name: string, records: readonly StudioRecord[]): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(exportedLines(records), { type: 'application/x-ndjson' }));
  link.download = `${name}.ndjson`;
  link.click();
  URL.revokeObjectURL(link.href);
}
