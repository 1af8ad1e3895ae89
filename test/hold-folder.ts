/** Holds a data folder until it is killed. */
import { lockFolder } from '../src/folder-lock.ts';

await lockFolder(process.argv[2]!);
process.stdout.write(`${process.pid}\n`);
setTimeout(() => undefined, 60_000);
