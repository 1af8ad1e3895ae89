/**
 * Imported by the service before its own files: a signal begins a profile, the next one ends it and writes it to `PROFILE_FILE`.
 * `PROFILE_OF` is `time`, or `allocations`: what is allocated, and where, also if it is collected by then.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

/** A sample in so many bytes: finer ones take more time than the service. */
const SAMPLED_EVERY = 16_384;

const { PROFILE_OF, PROFILE_FILE = '' } = process.env;
const isOfTime = PROFILE_OF === 'time';
const session = new Session();
let isUnderWay = false;

function begin(): void {
  session.connect();
  if (isOfTime) {
    session.post('Profiler.enable');
    session.post('Profiler.start');
  } else {
    session.post('HeapProfiler.startSampling', {
      samplingInterval: SAMPLED_EVERY,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
  }
}

function write(error: Error | null, { profile }: { readonly profile: object }): void {
  if (error !== null) throw error;
  writeFileSync(`${PROFILE_FILE}.part`, JSON.stringify(profile));
  renameSync(`${PROFILE_FILE}.part`, PROFILE_FILE);
}

process.on('SIGUSR2', () => {
  if (!isUnderWay) begin();
  else {
    if (isOfTime) session.post('Profiler.stop', write);
    else session.post('HeapProfiler.stopSampling', write);
    session.disconnect();
  }
  isUnderWay = !isUnderWay;
});
