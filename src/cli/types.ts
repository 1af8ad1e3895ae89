/** `bylaw types`: TypeScript types of the collections, on stdout. */
import { typescriptOf } from '../describe/typescript.ts';
import { reportingConfigErrors } from './command.ts';
import { describeSchema } from './describe.ts';

export const command = reportingConfigErrors({
  name: 'types',
  summary: 'print TypeScript types of the collections [--schema FILE]',
  run: (argv, io) => describeSchema({ argv, io, print: typescriptOf }),
});
