/**
 * Where a device keeps what must survive a reload: its sign-in and what it has not sent yet.
 * Values are plain data. Keys sort by their characters.
 */
export interface Store {
  get(key: string): Promise<unknown>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
  /** Everything whose key begins so, in the order of the keys. */
  list(prefix: string): Promise<Array<[string, unknown]>>;
}

/** Forgets everything when the page or process ends. */
export class MemoryStore implements Store {
  private readonly values = new Map<string, unknown>();

  async get(key: string): Promise<unknown> {
    return this.values.get(key);
  }

  async set(key: string, value: unknown): Promise<void> {
    this.values.set(key, structuredClone(value));
  }

  async delete(key: string): Promise<void> {
    this.values.delete(key);
  }

  async list(prefix: string): Promise<Array<[string, unknown]>> {
    const found = [...this.values].filter(([key]) => key.startsWith(prefix));
    return found.sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

/** As much of `indexedDB` as is needed here; its own type would ask every project for the types of browsers. */
export interface DatabaseFactory {
  open(name: string, version?: number): any;
}

/** The lasting store of a browser. */
export class IndexedDbStore implements Store {
  private opened: Promise<IDBDatabase> | undefined;

  constructor(
    private readonly name = "nexo",
    private readonly factory: DatabaseFactory = globalThis.indexedDB,
  ) {}

  get(key: string): Promise<unknown> {
    return this.ask("readonly", (values) => values.get(key));
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.ask("readwrite", (values) => values.put(value, key));
  }

  async delete(key: string): Promise<void> {
    await this.ask("readwrite", (values) => values.delete(key));
  }

  async list(prefix: string): Promise<Array<[string, unknown]>> {
    const range = IDBKeyRange.bound(prefix, prefix + "\uffff");
    const database = await this.open();
    const values = database.transaction("values", "readonly").objectStore("values");
    const [keys, found] = await Promise.all([
      result(values.getAllKeys(range)),
      result(values.getAll(range)),
    ]);
    return keys.map((key, index) => [String(key), found[index]]);
  }

  private async ask<T>(
    mode: IDBTransactionMode,
    request: (values: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> {
    const database = await this.open();
    return result(request(database.transaction("values", mode).objectStore("values")));
  }

  private open(): Promise<IDBDatabase> {
    this.opened ??= new Promise((resolve, reject) => {
      const request = this.factory.open(this.name, 1) as IDBOpenDBRequest;
      request.onupgradeneeded = () => void request.result.createObjectStore("values");
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => {
        this.opened = undefined; // the next one may try again
        reject(request.error);
      };
    });
    return this.opened;
  }
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** A store that fails (full, forbidden in a private window) costs the reload, not the conversation. */
export class ForgivingStore implements Store {
  constructor(
    private readonly store: Store,
    private readonly tell: (error: Error) => void,
  ) {}

  get(key: string): Promise<unknown> {
    return this.store.get(key).catch((error) => this.forgive(error, undefined));
  }

  set(key: string, value: unknown): Promise<void> {
    return this.store.set(key, value).catch((error) => this.forgive(error, undefined));
  }

  delete(key: string): Promise<void> {
    return this.store.delete(key).catch((error) => this.forgive(error, undefined));
  }

  list(prefix: string): Promise<Array<[string, unknown]>> {
    return this.store.list(prefix).catch((error) => this.forgive(error, []));
  }

  private forgive<T>(error: unknown, instead: T): T {
    this.tell(error instanceof Error ? error : new Error(String(error)));
    return instead;
  }
}

/** The lasting one if there is one. */
export function defaultStore(): Store {
  return typeof globalThis.indexedDB === "undefined" ? new MemoryStore() : new IndexedDbStore();
}
