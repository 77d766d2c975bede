/** A run of places without a hole. */
export interface Range {
  from: number;
  to: number;
}

/**
 * What has arrived of a dense sequence 1, 2, 3 …: everything up to `last`, and some beyond a hole.
 * Nothing beyond a hole is given out before the hole is filled.
 */
export class Prefix<Item> {
  private readonly beyond = new Map<number, Item>();
  private known: number;

  constructor(private end: number) {
    this.known = end;
  }

  /** Everything up to here has arrived. */
  get last(): number {
    return this.end;
  }

  /** Takes an item and gives out what is now without a hole, in order. What was there is nothing new. */
  add(seq: number, item: Item): Item[] {
    if (seq <= this.end || this.beyond.has(seq)) return [];
    this.beyond.set(seq, item);
    this.expect(seq);
    return this.drain();
  }

  /** There is something up to here, as somebody told us. */
  expect(seq: number): void {
    this.known = Math.max(this.known, seq);
  }

  /** Nothing up to here is to be had, or wanted: goes on after it. */
  skipTo(seq: number): Item[] {
    if (seq <= this.end) return [];
    for (const early of [...this.beyond.keys()]) if (early <= seq) this.beyond.delete(early);
    this.end = seq;
    this.expect(seq);
    return this.drain();
  }

  /** There is nothing beyond here after all, except what has arrived. */
  endsAt(seq: number): void {
    this.known = Math.max(seq, this.end, ...this.beyond.keys());
  }

  /** The places to ask for: from the first that is missing to the last that is known. */
  hole(): Range | undefined {
    return this.known > this.end ? { from: this.end + 1, to: this.known } : undefined;
  }

  /** What waits beyond a hole, in order. */
  early(): Item[] {
    return [...this.beyond].sort(([a], [b]) => a - b).map(([, item]) => item);
  }

  /** Changes an item that waits beyond a hole. */
  change(seq: number, to: (item: Item) => Item): void {
    const item = this.beyond.get(seq);
    if (item !== undefined) this.beyond.set(seq, to(item));
  }

  /** Forgets what waits, except what is to be kept. */
  forgetEarly(keep: (item: Item) => boolean): void {
    for (const [seq, item] of [...this.beyond]) if (!keep(item)) this.beyond.delete(seq);
  }

  private drain(): Item[] {
    const ready: Item[] = [];
    for (;;) {
      const next = this.beyond.get(this.end + 1);
      if (next === undefined) return ready;
      this.end += 1;
      this.beyond.delete(this.end);
      ready.push(next);
    }
  }
}
