/** Words by which other systems say who may do something, found where a policy is expected. */
import type { CatalogCollection } from '../../policy/types.ts';

const EVERYONE = new Set([
  'public',
  'all',
  'any',
  'anyone',
  'anybody',
  'everyone',
  'everybody',
  'open',
  'allow',
  'yes',
]);
const SIGNED_IN_WORDS = new Set([
  'authenticated',
  'auth',
  'logged_in',
  'loggedin',
  'signed_in',
  'user',
  'users',
  'registered',
]);
const NOBODY_WORDS = new Set(['private', 'none', 'nobody', 'no_one', 'never', 'deny', 'no', 'locked', 'disabled']);

export function policyFor(word: string): string | undefined {
  const lower = word.toLowerCase();
  if (EVERYONE.has(lower)) return 'true';
  if (SIGNED_IN_WORDS.has(lower)) return '@request.auth.id is not null';
  return NOBODY_WORDS.has(lower) ? 'false' : undefined;
}

export interface WordContext {
  readonly roles: ReadonlyMap<string, unknown>;
  readonly collection: CatalogCollection | undefined;
  /** The word is the `when` of a rule, and not a rule by itself. */
  readonly isWhen: boolean;
}
export interface WordAdvice {
  readonly message: string;
  /** YAML that takes the place of the word. */
  readonly replacement?: string;
}

/** The rule to write in place of a single word. */
export function adviceFor(word: string, { roles, collection, isWhen }: WordContext): WordAdvice | undefined {
  if (roles.has(word)) {
    const says = `\`${word}\` is a role, not a policy; write`;
    if (isWhen) return { message: `${says} \`roles: [${word}]\` in place of \`when\`` };
    const replacement = `[{ roles: [${word}] }]`;
    return { message: `${says} \`${replacement}\``, replacement };
  }
  const relation = collection?.relations.get(word);
  const isOwner = relation?.kind === 'belongs_to' && relation.collection === 'users';
  const policy = isOwner ? `@record.${word} = @request.auth.id` : policyFor(word);
  if (policy === undefined) return undefined;
  const meaning =
    policy === 'true' ? ', which allows every caller who is signed in, and with `guests: true` every other caller' : '';
  return { message: `\`${word}\` is not a policy; write \`${policy}\`${meaning}`, replacement: inYaml(policy) };
}

export const inYaml = (policy: string): string => (policy.startsWith('@') ? `'${policy}'` : policy);
