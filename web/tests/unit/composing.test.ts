import { expect, test } from "vitest";
import { isComposing } from "../../src/ui/composition.ts";

test("an Enter that takes a word of an input method is none of ours", () => {
  const key = (isOn: boolean, keyCode: number) => isComposing({ isComposing: isOn, keyCode } as KeyboardEvent);
  expect(key(true, 13)).toBe(true);
  expect(key(false, 229)).toBe(true); // as Safari reports it
  expect(key(false, 13)).toBe(false);
});
