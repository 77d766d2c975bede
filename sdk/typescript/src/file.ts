import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

import type { Store } from "./storage.js";

/** A persistent store for Node: one file, a line for every change, compacted when it is opened. */
export class FileStore implements Store {
  private readonly values = new Map<string, unknown>();

  constructor(private readonly path: string) {
    for (const line of existsSync(path) ? readFileSync(path, "utf8").split("\n") : []) {
      this.applyLine(line);
    }
    const lines = [...this.values].map(([key, value]) => JSON.stringify({ key, value }) + "\n");
    // The file holds the sign-in: only its owner may read it.
    writeFileSync(`${path}.new`, lines.join(""), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  async get(key: string): Promise<unknown> {
    return this.values.get(key);
  }

  async set(key: string, value: unknown): Promise<void> {
    const line = JSON.stringify({ key, value });
    this.applyLine(line);
    appendFileSync(this.path, line + "\n");
  }

  async delete(key: string): Promise<void> {
    if (this.values.delete(key)) appendFileSync(this.path, JSON.stringify({ key }) + "\n");
  }

  async list(prefix: string): Promise<Array<[string, unknown]>> {
    const found = [...this.values].filter(([key]) => key.startsWith(prefix));
    return found.sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** A torn last line is left by a process that was killed, and is ignored. */
  private applyLine(line: string): void {
    try {
      const { key, value } = JSON.parse(line) as { key: string; value?: unknown };
      if (value === undefined) this.values.delete(key);
      else this.values.set(key, value);
    } catch {
      return;
    }
  }
}
