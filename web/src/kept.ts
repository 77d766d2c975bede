/** What this device remembers in small: choices and drafts. A browser that forbids it costs only that. */
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
    // full or forbidden: nothing to be done
  }
}

/** Every key that begins so. */
export function keys(prefix: string): string[] {
  try {
    const all = Object.keys(localStorage).filter((key) => key.startsWith(`nexo/${prefix}`));
    return all.map((key) => key.slice("nexo/".length));
  } catch {
    return [];
  }
}
