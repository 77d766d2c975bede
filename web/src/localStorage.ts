/**
 * Settings and drafts in `localStorage`. If the browser forbids it, nothing is stored and the page works
 * without.
 */
export function read<T>(key: string): T | undefined {
  try {
    const text = localStorage.getItem(`nexo/${key}`);
    return text === null ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}

export function write(key: string, value: unknown): void {
  try {
    if (value === undefined) localStorage.removeItem(`nexo/${key}`);
    else localStorage.setItem(`nexo/${key}`, JSON.stringify(value));
  } catch {
    // full or forbidden: not stored
  }
}

/** All keys with this prefix. */
export function keys(prefix: string): string[] {
  try {
    const all = Object.keys(localStorage).filter((key) => key.startsWith(`nexo/${prefix}`));
    return all.map((key) => key.slice("nexo/".length));
  } catch {
    return [];
  }
}
