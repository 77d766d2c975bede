import { expect, test } from "vitest";
import { GroupReads } from "../src/reads.js";

const readState = (userId: string, fromSeq: number, readSeq: number) => ({ userId, fromSeq, deliveredSeq: readSeq, readSeq });

test("whoever is in no group does not count", () => {
  const reads = new GroupReads("me");
  reads.applyReceipt("system", "read", 1);
  expect(reads.at(1)).toEqual({ state: "saved", readBy: 0 });
  reads.load([readState("ann", 1, 1), readState("ben", 1, 1)]);
  reads.leave(["ben"]);
  reads.applyReceipt("ben", "delivered", 2); // said before it was heard that he left
  reads.applyReceipt("ann", "read", 3);
  expect(reads.at(3)).toEqual({ state: "read", readBy: 1 });
});

test("a join that is heard late takes nothing back", () => {
  const reads = new GroupReads("me");
  reads.load([readState("ann", 2, 3)]);
  reads.join(["ann"], 2);
  expect(reads.at(3)).toEqual({ state: "read", readBy: 1 });
  reads.join(["zoe"], 4);
  expect(reads.at(3)).toEqual({ state: "read", readBy: 1 });
  expect(reads.at(4)).toEqual({ state: "saved", readBy: 0 });
});
