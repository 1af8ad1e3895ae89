/** What introspection found, as a draft of bylaw.yaml. */

/** One line of a draft. */
export interface DraftMember {
  readonly name: string;
  /** The value as YAML. */
  readonly yaml: string;
  /** What to know about it. */
  readonly note?: string;
  /** Why the table cannot be adopted with it, and what would help. */
  readonly obstacle?: string;
}
export interface DraftTable {
  readonly name: string;
  readonly fields: readonly DraftMember[];
  readonly relations: readonly DraftMember[];
  readonly notes: readonly string[];
  /** Why the table cannot be adopted, apart from its members. */
  readonly obstacles: readonly string[];
}
export interface Skipped {
  readonly name: string;
  readonly reason: string;
}
export interface Draft {
  readonly adopted: readonly DraftTable[];
  /** Tables with a uuid key that need changes first. */
  readonly postponed: readonly DraftTable[];
  readonly skipped: readonly Skipped[];
}

/** YAML reads these without quotes as other values. */
export const yamlName = (name: string): string => (/^(?:null|true|false)$/i.test(name) ? JSON.stringify(name) : name);
/** What `users` has by itself, as the service makes it. */
export const USER_COLUMNS: Readonly<Record<string, string>> = {
  email: 'text',
  email_verified: 'boolean',
  roles: 'text[]',
  disabled: 'boolean',
};
