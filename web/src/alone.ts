/** Runs something while no other tab of this site does. Whoever gives up waiting says so by the signal. */
export async function alone<T>(
  name: string,
  run: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  // Pages without TLS have no locks; a lease in the database does for them.
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

/** Longer than whatever is done under it; a tab that died holds nobody up for longer. */
const LEASE_MS = 20_000;
const LOOK_MS = 100;

async function acquire(name: string, signal?: AbortSignal): Promise<{ release(): Promise<void> }> {
  const database = await open();
  const holder = Math.random();
  while (!(await take(database, name, holder))) {
    signal?.throwIfAborted();
    await new Promise((later) => setTimeout(later, LOOK_MS));
  }
  return {
    async release() {
      await change(database, name, (held) => (held?.holder === holder ? undefined : held));
      database.close();
    },
  };
}

interface Held {
  holder: number;
  until: number;
}

async function take(database: IDBDatabase, name: string, holder: number): Promise<boolean> {
  const now = Date.now();
  const held = await change(database, name, (current) =>
    current !== undefined && current.until > now ? current : { holder, until: now + LEASE_MS },
  );
  return held?.holder === holder;
}

/** One transaction, which the browser keeps apart from those of other tabs. */
function change(
  database: IDBDatabase,
  name: string,
  next: (held: Held | undefined) => Held | undefined,
): Promise<Held | undefined> {
  return new Promise((done, failed) => {
    const leases = database.transaction("leases", "readwrite").objectStore("leases");
    const asked: IDBRequest<Held | undefined> = leases.get(name);
    asked.onerror = () => failed(asked.error);
    asked.onsuccess = () => {
      const held = next(asked.result);
      const told = held === undefined ? leases.delete(name) : leases.put(held, name);
      told.onsuccess = () => done(held);
      told.onerror = () => failed(told.error);
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
