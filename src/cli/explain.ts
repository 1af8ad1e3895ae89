/**
 * `bylaw explain`: what the rules of an action become for a caller, as a condition and, given a
 * record or a write, clause by clause.
 */
import { printTrace } from './explain/print-trace.ts';
import { isOfQuestion, questionOf } from './explain/question.ts';
import { traceOf } from './explain/trace.ts';
import { traceDocument } from './explain/trace-document.ts';
import { type Command, DATABASE_SETTINGS } from './support/command.ts';
import { openDatabaseFor } from './support/workspace.ts';

export const command: Command = {
  name: 'explain',
  summary: 'shows what the rules of an action become: verdict, residual, which clause decides, SQL, plan',
  positionals: ['COLLECTION', 'ACTION'],
  settings: DATABASE_SETTINGS,
  flags: {
    as: { value: 'EMAIL', about: 'the caller; every route answers 401 without one', default: 'nobody' },
    record: {
      value: '[ID]',
      about:
        'also shows which clause decides about this record, and why; without an ID: about the record that a create makes',
    },
    query: { value: 'k=v', repeated: true, about: 'a parameter of the query string' },
    set: { value: 'JSON', about: 'what a create or update sends under `data`', default: 'nothing changes' },
    json: { about: 'prints one JSON document' },
  },
  async run(args, io) {
    const opened = await openDatabaseFor(args, io, isOfQuestion(args));
    try {
      const trace = await traceOf(await questionOf(args, opened));
      const text = args.has('json') ? JSON.stringify(traceDocument(trace), undefined, 2) : printTrace(trace).join('\n');
      io.stdout.write(`${text}\n`);
      return 0;
    } finally {
      await opened.close();
    }
  },
};
