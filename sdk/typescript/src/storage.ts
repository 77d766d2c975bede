/**
 * Persists the sign-in and unsent messages across reloads. Values are plain data. Keys sort by their
 * characters.
 */
export interface Store {
  get(key: string): Promise<unknown>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
  /** All entries whose key starts with `prefix`, ordered by key. */
  list(prefix: string): Promise<Array<[string, unknown]>>;
}

/** A store in memory: it is lost when the page or process ends. */
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

/** The part of `indexedDB` that is used. Its own type would require the DOM types in every project. */
export interface DatabaseFactory {
  open(name: string, version?: number): any;
}

/** The persistent store of browsers. */
export class IndexedDbStore implements Store {
  private opened: Promise<IDBDatabase> | undefined;

  constructor(
    private readonly name = "nexo",
    private readonly factory: DatabaseFactory = globalThis.indexedDB,
  ) {}

  get(key: string): Promise<unknown> {
    return this.request("readonly", (values) => values.get(key));
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.request("readwrite", (values) => values.put(value, key));
  }

  async delete(key: string): Promise<void> {
    await this.request("readwrite", (values) => values.delete(key));
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

  private async request<T>(
    mode: IDBTransactionMode,
    request: (values: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> {
    const database = await this.open();
    const transaction = database.transaction("values", mode);
    const requested = request(transaction.objectStore("values"));
    // Otherwise it is committed only after the page has seen the answer, and a reload before that aborts it.
    if (mode === "readwrite") transaction.commit?.();
    return result(requested);
  }

  private open(): Promise<IDBDatabase> {
    this.opened ??= new Promise((resolve, reject) => {
      const request = this.factory.open(this.name, 1) as IDBOpenDBRequest;
      request.onupgradeneeded = () => void request.result.createObjectStore("values");
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => {
        this.opened = undefined; // the next call may try again
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

/**
 * Wraps a store whose failures (full, forbidden in a private window) are reported and otherwise ignored: the
 * client goes on, only a reload loses data.
 */
export class BestEffortStore implements Store {
  constructor(
    private readonly store: Store,
    private readonly onError: (error: Error) => void,
  ) {}

  get(key: string): Promise<unknown> {
    return this.store.get(key).catch((error) => this.report(error, undefined));
  }

  set(key: string, value: unknown): Promise<void> {
    return this.store.set(key, value).catch((error) => this.report(error, undefined));
  }

  delete(key: string): Promise<void> {
    return this.store.delete(key).catch((error) => this.report(error, undefined));
  }

  list(prefix: string): Promise<Array<[string, unknown]>> {
    return this.store.list(prefix).catch((error) => this.report(error, []));
  }

  private report<T>(error: unknown, instead: T): T {
    this.onError(error instanceof Error ? error : new Error(String(error)));
    return instead;
  }
}

/** IndexedDB if available, else memory. */
export function defaultStore(): Store {
  return typeof globalThis.indexedDB === "undefined" ? new MemoryStore() : new IndexedDbStore();
}
