/** Starts `bylaw lsp` of the workspace for its schemas and tests. No telemetry, no requests over the network. */
const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

exports.activate = async () => {
  const [command, ...args] = workspace.getConfiguration('bylaw').get('command');
  const cwd = workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient(
    'bylaw',
    { command, args, options: { cwd, shell: process.platform === 'win32' } },
    { documentSelector: [{ pattern: '**/bylaw.yaml' }, { pattern: '**/*.policy.yaml' }] },
  );
  await client.start();
};

exports.deactivate = () => client?.stop();
