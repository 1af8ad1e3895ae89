/** The caller of a request. Only the auth room makes one. */
import type { Row } from '../policy/types.ts';

export interface Caller {
  readonly id: string;
  readonly sessionId: string;
  readonly by: 'bearer' | 'cookie';
  /**
   * The user's record as policies read it, `@request.auth`: id, email, email_verified, roles (with
   * the included ones), and the fields and belongs_to that the schema adds.
   */
  readonly auth: Row & { readonly roles: readonly string[] };
}
