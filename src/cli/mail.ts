/** `bylaw mail queue | retry | test`: the mails that wait, and the settings of mail. */
import { checkEmail } from '../auth/accounts/email-address.ts';
import type { Auth } from '../auth/auth.ts';
import { Problem } from '../problem.ts';
import { reasonOf } from '../thrown.ts';
import { type Arguments, type Command, type CommandGroup, DATABASE_SETTINGS, type Io } from './support/command.ts';
import { openWorkspace } from './support/workspace.ts';

interface MailCommand extends Pick<Command, 'summary' | 'positionals'> {
  readonly verb: string;
  /** Returns the lines to print. */
  readonly work: (auth: Auth, args: Arguments) => Promise<readonly string[]>;
}

export const command: CommandGroup = {
  name: 'mail',
  summary: 'shows the mails that wait, retries them, and tries the settings of mail',
  commands: [
    mailCommand({
      verb: 'queue',
      summary: 'prints the mails that wait, one a line: their kind, address and attempts',
      work: async ({ outbox }) => (await outbox.list()).map((mail) => JSON.stringify(mail)),
    }),
    mailCommand({
      verb: 'retry',
      summary: 'lets the servers send now the mails that failed',
      work: async ({ outbox }) => [`mails that are sent again: ${await outbox.retry()}`],
    }),
    mailCommand({
      verb: 'test',
      summary: 'sends a mail to an address now',
      positionals: ['ADDRESS'],
      work: async (auth, args) => {
        const address = args.positionals[0]!;
        checkEmail(address);
        await auth.sendTestMail(address);
        return [`sent to ${auth.mailTo}`];
      },
    }),
  ],
};

function mailCommand({ verb, work, ...described }: MailCommand): Command {
  return {
    ...described,
    name: `mail ${verb}`,
    settings: [...DATABASE_SETTINGS],
    run: (args, io) => run(verb, args, io, work),
  };
}

async function run(verb: string, args: Arguments, io: Io, work: MailCommand['work']): Promise<number> {
  const workspace = await openWorkspace(args, io);
  try {
    for (const line of await work(workspace.auth, args)) io.stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    if (verb !== 'test' && !(error instanceof Problem)) throw error;
    io.stderr.write(`bylaw mail ${verb}: ${reasonOf(error)}\n`);
    return 1;
  } finally {
    await workspace.close();
  }
}
