/** The condition of an update that changes nothing, as a condition on the record alone. */
import type { Checked } from '../../policy/types.ts';

/** `@next` is the record itself, and no member is changed. */
export const settledCheck = (checked: Checked): Checked => settledNode(checked) as Checked;

function settledNode(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(settledNode);
  if (typeof node !== 'object' || node === null) return node;
  const { kind } = node as { readonly kind?: unknown };
  if (kind === 'next') return { kind: 'record' };
  if (kind === 'changed') {
    const { unchanged, span } = node as Extract<Checked, { readonly kind: 'changed' }>;
    return { kind: 'const', value: unchanged, span };
  }
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, settledNode(value)]));
}
