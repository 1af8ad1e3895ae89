/**
 * Imported by the service before its own files: a signal begins to count what it allocates, and where; the next one writes that to a file.
 * What is collected by then counts too.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

/** A sample in so many bytes: finer ones take more time than the service. */
const SAMPLED_EVERY = 16_384;

const session = new Session();
let isSampling = false;

process.on('SIGUSR2', () => {
  if (!isSampling) {
    session.connect();
    session.post('HeapProfiler.startSampling', {
      samplingInterval: SAMPLED_EVERY,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
  } else {
    session.post('HeapProfiler.stopSampling', (error, { profile }) => {
      if (error !== null) throw error;
      const file = process.env.ALLOCATIONS_FILE!;
      writeFileSync(`${file}.part`, JSON.stringify(profile));
      renameSync(`${file}.part`, file);
    });
    session.disconnect();
  }
  isSampling = !isSampling;
});
