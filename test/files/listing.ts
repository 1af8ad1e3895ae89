/** All records of files that a caller may list. */
import type { Client } from '../support/client.ts';

export interface FileRecord {
  readonly id: string;
  readonly sha256: string;
}

export async function allFiles(client: Client): Promise<readonly FileRecord[]> {
  const found: FileRecord[] = [];
  for (let more = true; more; ) {
    const { body } = await client.get(`/api/files?limit=100&offset=${found.length}`);
    found.push(...body.data);
    more = body.page.has_more;
  }
  return found;
}
