/** `bylaw types`. */
import { typescriptOf } from '../describe/typescript.ts';
import type { Command } from './support/command.ts';
import { printSchema } from './support/schema-file.ts';

export const command: Command = {
  name: 'types',
  summary: 'prints TypeScript types of the collections',
  settings: ['schema'],
  run: async (args, io) => printSchema(args, io, typescriptOf),
};
