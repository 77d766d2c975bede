/** Runs `run` while no other tab of this site holds the lock. The signal ends the wait. */
export async function withTabLock<T>(
  name: string,
  run: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  // Pages without TLS have no Web Locks; they use a lease in IndexedDB.
  if (globalThis.navigator?.locks !== undefined) {
    const options = signal === undefined ? {} : { signal };
    return (await navigator.locks.request(name, options, run)) as T;
  }
  const lease = await acquire(name, signal);
  try {
    return await run();
  } finally {
    await lease.release();
  }
}

/** Longer than any work under the lock; a tab that died blocks the others no longer than this. */
const LEASE_MS = 20_000;
const RETRY_MS = 100;

async function acquire(name: string, signal?: AbortSignal): Promise<{ release(): Promise<void> }> {
  const database = await open();
  const holder = Math.random();
  while (!(await tryTakeLease(database, name, holder))) {
    signal?.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return {
    async release() {
      await updateLease(database, name, (lease) => (lease?.holder === holder ? undefined : lease));
      database.close();
    },
  };
}

interface Lease {
  holder: number;
  until: number;
}

async function tryTakeLease(database: IDBDatabase, name: string, holder: number): Promise<boolean> {
  const now = Date.now();
  const lease = await updateLease(database, name, (current) =>
    current !== undefined && current.until > now ? current : { holder, until: now + LEASE_MS },
  );
  return lease?.holder === holder;
}

/** One transaction: the browser isolates it from those of other tabs. */
function updateLease(
  database: IDBDatabase,
  name: string,
  next: (lease: Lease | undefined) => Lease | undefined,
): Promise<Lease | undefined> {
  return new Promise((done, failed) => {
    const leases = database.transaction("leases", "readwrite").objectStore("leases");
    const request: IDBRequest<Lease | undefined> = leases.get(name);
    request.onerror = () => failed(request.error);
    request.onsuccess = () => {
      const lease = next(request.result);
      const write = lease === undefined ? leases.delete(name) : leases.put(lease, name);
      write.onsuccess = () => done(lease);
      write.onerror = () => failed(write.error);
    };
  });
}

function open(): Promise<IDBDatabase> {
  return new Promise((done, failed) => {
    const request = indexedDB.open("nexo-leases", 1);
    request.onupgradeneeded = () => void request.result.createObjectStore("leases");
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
}
