/** The routes of passkeys, in the order of the manual. */
import type { DescribedRoute } from '../../define-route.ts';
import { addPasskey } from './add-passkey.ts';
import { listPasskeys } from './list-passkeys.ts';
import { passkeyLogin } from './passkey-login.ts';
import { passkeyLoginOptions } from './passkey-login-options.ts';
import { passkeyOptions } from './passkey-options.ts';
import { removePasskey } from './remove-passkey.ts';
import { renamePasskey } from './rename-passkey.ts';

export const passkeyRoutes: readonly DescribedRoute[] = [
  passkeyLoginOptions,
  passkeyLogin,
  passkeyOptions,
  addPasskey,
  listPasskeys,
  renamePasskey,
  removePasskey,
];
