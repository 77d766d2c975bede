/** A range of seqs, both ends included. */
export interface Range {
  from: number;
  to: number;
}

/**
 * What has arrived of the dense sequence 1, 2, 3 …: everything up to `last`, and a buffer of items beyond a
 * gap. Items beyond a gap are released when the gap is filled.
 */
export class Contiguous<Item> {
  private readonly buffer = new Map<number, Item>();
  private expected: number;

  constructor(private end: number) {
    this.expected = end;
  }

  /** Everything up to this seq has arrived. */
  get last(): number {
    return this.end;
  }

  /** Adds an item and returns what is now contiguous, in order. Duplicates are ignored. */
  add(seq: number, item: Item): Item[] {
    if (seq <= this.end || this.buffer.has(seq)) return [];
    this.buffer.set(seq, item);
    this.expect(seq);
    return this.drain();
  }

  /** Records that items up to this seq exist. */
  expect(seq: number): void {
    this.expected = Math.max(this.expected, seq);
  }

  /** Continues after this seq: earlier items are not available or not wanted. */
  skipTo(seq: number): Item[] {
    if (seq <= this.end) return [];
    for (const early of [...this.buffer.keys()]) if (early <= seq) this.buffer.delete(early);
    this.end = seq;
    this.expect(seq);
    return this.drain();
  }

  /** Corrects the expected end: nothing exists beyond this seq except what has arrived. */
  lowerExpected(seq: number): void {
    this.expected = Math.max(seq, this.end, ...this.buffer.keys());
  }

  /** The range to request: from the first missing seq to the last expected one. */
  gap(): Range | undefined {
    return this.expected > this.end ? { from: this.end + 1, to: this.expected } : undefined;
  }

  /** The items beyond a gap, in order. */
  buffered(): Item[] {
    return [...this.buffer].sort(([a], [b]) => a - b).map(([, item]) => item);
  }

  /** Changes an item beyond a gap. */
  updateBuffered(seq: number, to: (item: Item) => Item): void {
    const item = this.buffer.get(seq);
    if (item !== undefined) this.buffer.set(seq, to(item));
  }

  /** Drops the items beyond a gap that `keep` rejects. */
  retainBuffered(keep: (item: Item) => boolean): void {
    for (const [seq, item] of [...this.buffer]) if (!keep(item)) this.buffer.delete(seq);
  }

  private drain(): Item[] {
    const ready: Item[] = [];
    for (;;) {
      const next = this.buffer.get(this.end + 1);
      if (next === undefined) return ready;
      this.end += 1;
      this.buffer.delete(this.end);
      ready.push(next);
    }
  }
}
