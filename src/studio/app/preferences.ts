/** Choices that this device keeps: theme, density, columns. */
import { effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'normal' | 'compact';

const keyOfPreference = (name: string): string => `bylaw-studio:${name}`;

/** Storage may be forbidden; the choice then lasts for the page. */
export function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(keyOfPreference(name)) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(keyOfPreference(name), value);
  } catch {
    // It lasts for the page.
  }
}

/** A service of others is read-only until editing is switched on. */
export const isOwnMachine = /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\])$/.test(location.hostname);
export const isEditingOn = signal(isOwnMachine);

export const theme = signal<Theme>((kept('theme') as Theme | undefined) ?? 'system');
export const density = signal<Density>((kept('density') as Density | undefined) ?? 'normal');

/** Writes the choices into the document, where the style reads them. */
export function applyPreferences(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    keep('theme', theme.value);
  });
  effect(() => {
    document.documentElement.dataset.density = density.value;
    keep('density', density.value);
  });
}
