/** `bylaw keys rotate`: servers pick the new key up without a restart. */
import { type CommandGroup, DATABASE_SETTINGS } from './command.ts';
import { openWorkspace } from './workspace.ts';

export const command: CommandGroup = {
  name: 'keys',
  summary: 'rotates the signing keys of access tokens',
  commands: [
    {
      name: 'keys rotate',
      summary: 'makes a new signing key; tokens of the old one stay valid until they expire',
      settings: DATABASE_SETTINGS,
      async run(args, io) {
        const workspace = await openWorkspace(args, io);
        try {
          io.stdout.write(`the new key is ${await workspace.auth.admin.rotateKeys()}; it signs from now on\n`);
          return 0;
        } finally {
          await workspace.close();
        }
      },
    },
  ],
};
