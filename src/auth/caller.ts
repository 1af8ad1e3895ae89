/** The caller of a request. Only the auth room makes one. */

import type { CallerKind, Row } from '../policy/types.ts';
import type { KeyBounds } from './api-keys/key-bounds.ts';

export interface Caller {
  readonly kind: CallerKind;
  /** The id of the user, the key or the guest's session: limits, shares and the audit trail are by it. */
  readonly principal: string;
  /** A key's own id, for a key. */
  readonly sessionId: string;
  readonly by: 'bearer' | 'cookie' | 'key';
  /** Bounds of a key. */
  readonly bounds?: KeyBounds;
  /** All visitors of a page send the same publishable key: each address has limits and shares of its own. */
  readonly isShared?: true;
  /**
   * The caller as policies read it, `@request.auth`: a user's id, email, email_verified, roles (with
   * the included ones), the facts of the session, and the fields and belongs_to that the schema adds;
   * a key's id and roles.
   * Only policies read the id: it may be absent, and a key's is not a user's.
   */
  readonly auth: Row & { readonly roles: readonly string[] };
}
