/** Changes of roles, registration and the time zone, and of checks and messages, in words. */
import type { Collection, Schema } from '../../schema/model/model.ts';
import type { MergedCatalog } from './merged-catalog.ts';

export function settingsChanges(old: Schema, changed: Schema, merged: MergedCatalog): readonly string[] {
  const lines: string[] = [];
  const names = new Set([...old.roles.keys(), ...changed.roles.keys()]);
  for (const name of names) {
    const [a, b] = [old.roles.get(name), changed.roles.get(name)];
    if (a === undefined) lines.push(`role \`${name}\` is added`);
    else if (b === undefined) lines.push(`role \`${name}\` is removed`);
    else lines.push(...listChanges(`role \`${name}\` includes`, a.includes, b.includes));
    if (a !== undefined && b !== undefined)
      lines.push(...listChanges(`role \`${name}\` assigns`, a.assigns, b.assigns));
  }
  if (old.guests !== changed.guests) lines.push(`guests are ${changed.guests ? 'admitted' : 'no longer admitted'}`);
  lines.push(
    ...listChanges('a second factor is required for', [...old.secondFactorRoles], [...changed.secondFactorRoles]),
  );
  lines.push(...listChanges('registration gives', old.register.roles, changed.register.roles));
  if (old.register.open !== changed.register.open)
    lines.push(`registration is ${changed.register.open ? 'open' : 'no longer open'}`);
  if (old.timezone !== changed.timezone) lines.push(`the time zone is ${changed.timezone}`);
  return [...lines, ...messageChanges(old, changed, merged)];
}

function listChanges(subject: string, old: readonly string[], changed: readonly string[]): readonly string[] {
  const more = changed.filter((name) => !old.includes(name)).map((name) => `${subject} \`${name}\``);
  const less = old.filter((name) => !changed.includes(name)).map((name) => `${subject} \`${name}\` no longer`);
  return [...more, ...less];
}

// ---------------------------------------------------------------- messages

/** Checks by name, and the messages of rules and checks. */
function messageChanges(old: Schema, changed: Schema, merged: MergedCatalog): readonly string[] {
  return [...old.collections.values()].flatMap((before) => {
    const name = merged.nameOf(before.name);
    const after = changed.collections.get(name);
    if (after === undefined) return [];
    const [former, messages] = [ruleMessagesOf(before), ruleMessagesOf(after)];
    return [
      ...listChanges(`\`${name}\` has the check`, checkNames(before), checkNames(after)),
      ...messages
        .filter((each) => !former.includes(each))
        .map((each) => `\`${name}\` has the message ${JSON.stringify(each)}`),
      ...former
        .filter((each) => !messages.includes(each))
        .map((each) => `\`${name}\` has the message ${JSON.stringify(each)} no longer`),
    ];
  });
}

const checkNames = ({ checks }: Collection): readonly string[] => checks.map(({ name }) => name);

function ruleMessagesOf({ access, memberAccess, checks }: Collection): readonly string[] {
  const rules = [access, ...memberAccess.values()].flatMap((each) => Object.values(each).flat());
  const all = [...rules.map(({ message }) => message), ...checks.map(({ message }) => message)];
  return [...new Set(all.filter((message) => message !== undefined))];
}
