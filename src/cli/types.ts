/** `bylaw types`: TypeScript types of the collections, on stdout. */
import { typescriptOf } from '../schema/typescript.ts';
import { commandOf } from './command.ts';
import { describeSchema } from './describe.ts';

export const command = commandOf({
  name: 'types',
  summary: 'print TypeScript types of the collections [--schema FILE]',
  run: (argv, io) => describeSchema({ argv, io, print: typescriptOf }),
});
