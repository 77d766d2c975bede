import { codes } from "nexo-sdk";
import { expect, test } from "vitest";
import { languageOf } from "../../src/settings.svelte.ts";
import { en } from "../../src/texts/en.ts";
import { zh } from "../../src/texts/zh.ts";

type Tree = { [key: string]: Tree | string | ((...args: never[]) => string) };

/** Every text by its path; functions are called with examples. */
function flat(tree: Tree, path = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(tree)) {
    const at = path === "" ? key : `${path}.${key}`;
    if (typeof value === "string") found.set(at, value);
    else if (typeof value === "function") found.set(at, value(...([3, 3, 3] as unknown as never[])));
    else for (const [inner, text] of flat(value, at)) found.set(inner, text);
  }
  return found;
}

const [english, chinese] = [flat(en as unknown as Tree), flat(zh as unknown as Tree)];

test("both languages say the same things, and none is empty", () => {
  expect([...chinese.keys()].sort()).toEqual([...english.keys()].sort());
  for (const [key, text] of [...english, ...chinese]) expect(text.trim(), key).not.toBe("");
});

test("what takes something says it", () => {
  for (const texts of [english, chinese]) {
    for (const [key, text] of texts) expect(text, key).not.toMatch(/undefined|\[object|=>/);
  }
});

test("every reason has a sentence of its own, and none shows its code", () => {
  for (const reason of Object.keys(codes)) {
    for (const reasons of [en.reasons, zh.reasons]) {
      const sentence = reasons[reason as keyof typeof codes];
      expect(sentence, reason).toMatch(/[.。?？]$/);
      expect(sentence).not.toMatch(/[a-z]_[a-z]/);
    }
  }
  expect(Object.keys(en.reasons).sort()).toEqual(Object.keys(codes).sort());
});

test("the words are those of chat apps", () => {
  const { list, group, settings } = en;
  expect([list.mute, group.transfer, group.kick, group.muteAll, settings.themeAuto, en.system]).toEqual([
    "Mute notifications",
    "Transfer ownership",
    "Remove from group",
    "Only admins can post",
    "System",
    "System",
  ]);
  const old = [...english].filter(([, text]) => /\b(take|takes|taken|took)\b.*\bback\b|may (not )?write|give them/i.test(text));
  expect(old).toEqual([]);
});

test("Chinese is Chinese", () => {
  const same = [...chinese].filter(([key, text]) => text === english.get(key) && key !== "app");
  expect(same).toEqual([]);
  const latin = [...chinese].filter(([key, text]) => !/[\u4e00-\u9fff]/.test(text) && !["app", "locale"].includes(key));
  expect(latin.map(([key]) => key)).toEqual(["chat.from", "note.comma"]);
});

test("the browser's first language that we speak", () => {
  const cases = [[["zh-TW", "en"], "zh"], [["fr", "zh"], "zh"], [["en-US", "zh"], "en"], [["fr"], "en"], [[], "en"]] as const;
  for (const [wanted, spoken] of cases) expect(languageOf(wanted)).toBe(spoken);
});
