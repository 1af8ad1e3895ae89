/** `bylaw mail queue | retry | test | preview`: the mails that wait, the settings of mail, and its templates. */
import { spawn } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkEmail } from '../../auth/accounts/email-address.ts';
import type { Auth } from '../../auth/auth.ts';
import { sampleData } from '../../auth/mail/mail-samples.ts';
import { MailTemplates } from '../../auth/mail/mail-templates.ts';
import { MailWriter } from '../../auth/mail/mail-writer.ts';
import { MAIL_KINDS } from '../../auth/mail/outbox.ts';
import { ConfigError, schemaFileOf } from '../../config.ts';
import { Problem } from '../../problem.ts';
import { reasonOf } from '../../thrown.ts';
import { type Arguments, type Command, type CommandGroup, DATABASE_SETTINGS, type Io } from '../support/command.ts';
import { type DatabaseUse, openWorkspace, requireSchema } from '../support/workspace.ts';

interface MailCommand extends Pick<Command, 'summary' | 'positionals'>, DatabaseUse {
  readonly verb: string;
  /** Returns the lines to print. */
  readonly work: (auth: Auth, args: Arguments) => Promise<readonly string[]>;
}

export const command: CommandGroup = {
  name: 'mail',
  summary: 'shows the mails that wait, retries them, tries the settings of mail, and previews mails',
  commands: [
    {
      name: 'mail preview',
      summary: `prints a mail with sample data; the kinds are ${MAIL_KINDS.join(', ')}`,
      positionals: ['KIND'],
      settings: ['schema'],
      flags: {
        language: { value: 'L', about: 'one of `mail.languages` in the schema; default: the first' },
        open: { about: 'shows the HTML in the browser' },
      },
      run: preview,
    },
    mailCommand({
      verb: 'queue',
      writes: false,
      summary: 'prints the mails that wait, one a line: their kind, address and attempts',
      work: async ({ outbox }) => (await outbox.list()).map((mail) => JSON.stringify(mail)),
    }),
    mailCommand({
      verb: 'retry',
      writes: true,
      summary: 'lets the servers send now the mails that failed',
      work: async ({ outbox }) => [`mails that are sent again: ${await outbox.retry()}`],
    }),
    mailCommand({
      verb: 'test',
      writes: true,
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

async function preview(args: Arguments, io: Io): Promise<number> {
  const kind = MAIL_KINDS.find((each) => each === args.positionals[0]);
  if (kind === undefined) throw new ConfigError([`expected a kind of mail: one of ${MAIL_KINDS.join(', ')}`]);
  const schema = requireSchema(schemaFileOf(args.flags, io.env), io);
  const { languages } = schema.mail;
  const language = args.get('language') ?? languages[0]!;
  if (!languages.includes(language)) throw new ConfigError([`--language: expected one of ${languages.join(', ')}`]);
  const writer = new MailWriter(schema, () => 'https://api.example.com', MailTemplates.load(schema, io.cwd));
  const { subject, text, html = '' } = writer.render(kind, language, sampleData(kind, schema));
  io.stdout.write(`Subject: ${subject}\n\n${text}`);
  if (args.has('open')) await showInBrowser(html, io);
  return 0;
}

async function showInBrowser(html: string, io: Io): Promise<void> {
  const file = join(await mkdtemp(join(tmpdir(), 'bylaw-mail-')), 'mail.html');
  await writeFile(file, html);
  io.stdout.write(`\nHTML: ${file}\n`);
  const opener = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  // The name of the file is printed; a machine without a browser shows nothing.
  spawn(opener, [file], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref();
}

function mailCommand({ verb, writes, work, ...described }: MailCommand): Command {
  return {
    ...described,
    name: `mail ${verb}`,
    settings: [...DATABASE_SETTINGS],
    run: (args, io) => run(args, io, { verb, writes, work }),
  };
}

type MailRun = Pick<MailCommand, 'verb' | 'writes' | 'work'>;

async function run(args: Arguments, io: Io, { verb, writes, work }: MailRun): Promise<number> {
  const workspace = await openWorkspace(args, io, { writes });
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
