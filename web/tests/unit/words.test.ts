import type { ConversationLine } from "nexo-sdk";
import { expect, test } from "vitest";
import { mentionAt, partsOf } from "../../src/chat/parts.ts";
import { idsOf, passwordProblem, resetCodeProblem, userIdProblem } from "../../src/entry/rules.ts";
import { matching } from "../../src/list/search.ts";
import { matchingPeople, namedBy } from "../../src/people/pick.ts";
import { hashOf, mayBeOf, placeOf } from "../../src/route.svelte.ts";
import { en } from "../../src/texts/en.ts";
import { zh } from "../../src/texts/zh.ts";
import { agoName, dayName, shortTime } from "../../src/time.ts";
import { initialsOf, pictureOf } from "../../src/ui/face.ts";

test("only http and https become links", () => {
  const links = (text: string) => partsOf(text).flatMap((part) => (part.kind === "link" ? part.href : []));
  expect(links("see https://a.example/b?c=d, and http://e.example.")).toEqual(["https://a.example/b?c=d", "http://e.example"]);
  expect(links("javascript:alert(1) data:text/html,x ftp://a mailto:a@b //c")).toEqual([]);
  expect(links("https://")).toEqual([]);
  expect(links('https://a.example/"onclick="x')).toEqual(["https://a.example/"]);
  expect(links("（https://a.example）。")).toEqual(["https://a.example"]);
});

test("nothing of a text is lost", () => {
  for (const text of ["", "a\n\nb", "@Ann @Anna: https://a.example @Ann", "<b>&amp;</b>"]) {
    const mentions = [{ word: "@Ann", isMe: false }, { word: "@Anna", isMe: true }];
    expect(partsOf(text, mentions).map((part) => part.text).join("")).toBe(text);
  }
  const found = partsOf("@Anna and @Ann", [{ word: "@Ann", isMe: false }, { word: "@Anna", isMe: true }]);
  expect(found.filter((part) => part.kind === "mention").map((part) => part.text)).toEqual(["@Anna", "@Ann"]);
});

test("a mention begins with an @ that is no e-mail address", () => {
  expect(mentionAt("hi @be", 6)).toEqual({ from: 3, query: "be" });
  expect(mentionAt("hi @be there", 6)).toEqual({ from: 3, query: "be" });
  expect(mentionAt("@", 1)).toEqual({ from: 0, query: "" });
  expect(mentionAt("你好@林", 4)).toEqual({ from: 2, query: "林" });
  for (const text of ["a@b", "no", "@a\n", "@ a"]) expect(mentionAt(text, text.length), text).toBeUndefined();
});

test("rules of user ids and passwords", () => {
  expect(userIdProblem(en, "ann.a-1")).toBeUndefined();
  for (const id of ["", "a b", "ä", "a".repeat(65)]) expect(userIdProblem(en, id), id).toBeDefined();
  expect(passwordProblem(en, "12345678")).toBeUndefined();
  expect(passwordProblem(en, "😀".repeat(8))).toBeUndefined();
  for (const one of ["", "1234567", "x".repeat(129)]) expect(passwordProblem(en, one)).toBeDefined();
  expect(idsOf(" ann, ben;ann\ncora，dan ")).toEqual(["ann", "ben", "cora", "dan"]);
});

test("a search wants all words, in names and ids", () => {
  const line = (name: string, peerId: string) => ({ name, peerId }) as ConversationLine;
  const all = [line("Anna Berg", "ab"), line("Ben", "anna2"), line("林晓", "lin")];
  const names = (words: string) => matching(all, words).map((one) => one.name);
  expect(names("")).toHaveLength(3);
  expect(names("ANNA")).toEqual(["Anna Berg", "Ben"]);
  expect(names("berg ann")).toEqual(["Anna Berg"]);
  expect(names("晓")).toEqual(["林晓"]);
});

test("people are found by name and id, who has exactly this id first", () => {
  const all = [{ id: "benny", name: "Benny Hill" }, { id: "ben", name: "Zoe" }, { id: "lin", name: "林晓" }];
  const ids = (text: string) => matchingPeople(all, text).map(({ id }) => id);
  expect(ids("")).toEqual(["benny", "ben", "lin"]);
  expect(ids("BEN")).toEqual(["ben", "benny"]);
  expect(ids("hill benny")).toEqual(["benny"]);
  expect(ids("晓")).toEqual(["lin"]);
  expect(namedBy(all, " benny hill ")).toEqual(["benny"]); // a whole name
  expect(namedBy(all, "ben, nobody")).toEqual(["ben", "nobody"]);
  const twins = [...all, { id: "zoe2", name: "Zoe" }];
  expect(namedBy(twins, "Zoe")).toEqual(["Zoe"]); // nobody guesses
});

test("a reset code may be spelled as one likes", () => {
  for (const code of ["A4DQ-OBYH-A4DQ-OBYH", "a4dqobyha4dqobyh", " a4dq obyh a4dq obyh "]) expect(resetCodeProblem(en, code)).toBeUndefined();
  for (const code of ["", " - ", "A4DQ-OBYH", "A4DQ-OBYH-A4DQ-OBY1"]) expect(resetCodeProblem(en, code), code).toBeDefined();
});

test("an address leads where it came from", () => {
  for (const place of [{}, { conversation: "sg_x", person: "a/b%" }, { isSettings: true }, { conversation: "si_a_b" }, { conversation: "sg_x/y%", isInfo: true }]) {
    expect(placeOf(hashOf(place))).toEqual(place);
  }
  for (const hash of ["", "#", "#/c/", "#/x/y"]) expect(placeOf(hash)).toEqual({});
  expect(placeOf("#/c/%E0%A4%A")).toEqual({ conversation: "%E0%A4%A" });
});

test("a link leads only to a conversation one can be in", () => {
  for (const own of ["si_alice_carol", "si_carol_dave", "sg_1024"]) expect(mayBeOf("carol", own)).toBe(true);
  for (const other of ["si_alice_bob", "si_carol", "si_a_b_carol", "carol", ""]) expect(mayBeOf("carol", other)).toBe(false);
});

test("days have names", () => {
  const now = +new Date(2026, 10, 16, 9);
  expect(dayName(en, +new Date(2026, 10, 16, 0, 0, 1), now)).toBe("Today");
  expect(dayName(en, +new Date(2026, 10, 15, 23, 59), now)).toBe("Yesterday");
  expect(dayName(zh, +new Date(2026, 10, 15, 23, 59), now)).toBe("昨天");
  expect(dayName(en, +new Date(2026, 10, 10), now)).toContain("10");
  expect(dayName(en, +new Date(2024, 0, 1), now)).toContain("2024");
  expect(shortTime(en, +new Date(2026, 10, 15), now)).toBe("Yesterday");
  expect(agoName(en, now - 30_000, now)).toBe("just now");
  expect(agoName(en, now - 60_000, now)).toBe("a minute ago");
  expect(agoName(zh, now - 2 * 3_600_000, now)).toBe("2 小时前");
});

test("faces: an emoji, else initials, and never an address", () => {
  expect(pictureOf("🦊")).toBe("🦊");
  expect(pictureOf("👩‍🌾")).toBe("👩‍🌾");
  for (const avatar of ["", "https://example.org/a.png", "<img>", "long text"]) expect(pictureOf(avatar), avatar).toBeUndefined();
  const cases = [["Anna Berg", "AB"], ["anna", "A"], ["林晓", "林"], ["ann.berg-x", "AB"], ["🦊", "🦊"], ["", "?"]] as const;
  for (const [name, initials] of cases) expect(initialsOf(name)).toBe(initials);
});
