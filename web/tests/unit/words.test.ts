import type { ConversationSummary, Group } from "nexo-sdk";
import { expect, test } from "vitest";
import { emojiOnly } from "../../src/chat/emoji.ts";
import { noticeNames } from "../../src/chat/noticeNames.ts";
import { mentionAt, partsOf } from "../../src/chat/textParts.ts";
import { readOnlyReasonOf } from "../../src/chat/readOnly.ts";
import { inviteCodeOf, parseIds, passwordProblem, resetCodeProblem, userIdProblem } from "../../src/auth/validation.ts";
import { matching } from "../../src/list/search.ts";
import { matchingPeople, typedIds } from "../../src/people/matchPeople.ts";
import { hashOf, isOwnConversation, parseHash } from "../../src/route.svelte.ts";
import { en } from "../../src/texts/en.ts";
import { zh } from "../../src/texts/zh.ts";
import { agoName, clockTime, dayName, shortTime, untilName } from "../../src/time.ts";
import { initialsOf, pictureOf } from "../../src/ui/avatar.ts";

test("only http and https become links", () => {
  const links = (text: string) => partsOf(text).flatMap((part) => (part.kind === "link" ? part.href : []));
  expect(links("see https://a.example/b?c=d, and http://e.example.")).toEqual(["https://a.example/b?c=d", "http://e.example"]);
  expect(links("javascript:alert(1) data:text/html,x ftp://a mailto:a@b //c")).toEqual([]);
  expect(links("https://")).toEqual([]);
  expect(links('https://a.example/"onclick="x')).toEqual(["https://a.example/"]);
  expect(links("（https://a.example）。")).toEqual(["https://a.example"]);
});

test("links keep the brackets that are theirs, and lose those that are not", () => {
  const link = (text: string) => partsOf(text).flatMap((part) => (part.kind === "link" ? `${part.text} ${part.href}` : []));
  const same = (address: string) => [`${address} ${address}`];
  expect(link("(https://x.example/y_(z))")).toEqual(same("https://x.example/y_(z)"));
  expect(link("see https://x.example/y_(z), please")).toEqual(same("https://x.example/y_(z)"));
  expect(link("[here](https://x.example/a[1])")).toEqual(same("https://x.example/a[1]"));
  expect(link("https://x.example/?q={a}!?…")).toEqual(same("https://x.example/?q={a}"));
  expect(link("Go to www.example.org/a. Now")).toEqual(["www.example.org/a https://www.example.org/a"]);
  expect(link("WWW.EXAMPLE.ORG")).toEqual(["WWW.EXAMPLE.ORG https://WWW.EXAMPLE.ORG"]);
  for (const none of ["www.", "www.x", "awww.example.org", "a@b", "@example.org", "www..x.y"]) expect(link(none), none).toEqual([]);
  expect(link("Write to ann.b+c@mail.example.org.")).toEqual(["ann.b+c@mail.example.org mailto:ann.b+c@mail.example.org"]);
  expect(link("https://u@x.example/")).toEqual(same("https://u@x.example/"));
  expect(link("زوروا \u200fhttps://x.example/a\u200f، أو www.example.org.")).toEqual([
    ...same("https://x.example/a"),
    "www.example.org https://www.example.org",
  ]);
});

test("quotes and Chinese punctuation around a link are not part of it", () => {
  const link = (text: string) => partsOf(text).flatMap((part) => (part.kind === "link" ? part.text : []));
  const around = ["“”", "‘’", "„“", "‚‘", "«»", "»«", "‹›", "「」", "『』", "（）", "【】", "《》", "〈〉", "〔〕", "［］", '""', "''", "<>"];
  for (const [open, close] of around) {
    expect(link(`${open}https://a.example${close}`), close).toEqual(["https://a.example"]);
    expect(link(`${open}www.a.example/b${close}x`), close).toEqual(["www.a.example/b"]);
  }
  for (const mark of "。，、；：！？") expect(link(`看https://a.example/b${mark}好`), mark).toEqual(["https://a.example/b"]);
  expect(link("“https://a.example/b.” she said")).toEqual(["https://a.example/b"]);
});

test("a text of addresses is read in a moment", () => {
  const started = performance.now();
  for (const text of ["a.".repeat(2_000), "a@".repeat(2_000), "https://x/(".repeat(400), "www.".repeat(1_000), ")".repeat(4_000)]) {
    partsOf(text);
    partsOf(`https://x.example/${text}`);
  }
  expect(performance.now() - started).toBeLessThan(500);
});

test("a few emoji alone are large, anything else is text", () => {
  const cases = [["👍", 1], ["❤️ 🎉", 2], ["👩‍👩‍👧‍👦👋🏽🇩🇪", 3], ["1️⃣", 1], [" 😀\n", 1]] as const;
  for (const [text, many] of cases) expect(emojiOnly(text), text).toBe(many);
  for (const text of ["", " ", "👍👍👍👍", "👍 ok", "12", "©", "#", "a", "👍!"]) expect(emojiOnly(text), text).toBe(0);
});

test("a clock shows time as it is written there", () => {
  const at = +new Date(2026, 10, 16, 14, 35);
  const plain = (text: string) => text.replace(/\s/g, " ");
  for (const [locale, shown] of [["en-US", "2:35 PM"], ["en-GB", "14:35"], ["zh-CN", "14:35"]] as const) {
    expect(plain(clockTime({ ...en, locale }, at))).toBe(shown);
  }
  expect(plain(untilName({ ...en, locale: "en-GB" }, at, at - 3_600_000))).toBe("14:35");
  expect(plain(untilName({ ...en, locale: "en-GB" }, at, at - 86_400_000))).toBe("16 Nov 2026, 14:35");
});

test("a notice about many begins with oneself", () => {
  const nameOf = (id: string) => id.toUpperCase();
  const joined = (...ids: string[]) => en.note.joined(noticeNames(en, ids, "sam", nameOf));
  expect(joined("quinn", "sam", "vera")).toBe("You, QUINN and VERA joined");
  expect(joined("quinn", "sam")).toBe("You and QUINN joined");
  expect(joined("sam")).toBe("You joined");
  expect(joined("quinn", "vera")).toBe("QUINN and VERA joined");
  expect(joined("a", "b", "c", "d", "e", "f", "sam")).toBe("You, A, B, C, D and 2 more joined");
  expect(zh.note.joined(noticeNames(zh, ["quinn", "sam", "vera"], "sam", nameOf))).toBe("你、QUINN 和 VERA 加入了群组");
});

test("why one cannot write", () => {
  const line = { peerId: "ben", isActive: true } as ConversationSummary;
  const group = { myRole: "member", mutedUntil: 0, isMuted: false } as Group;
  const inGroup = { groupId: "g", isActive: true } as ConversationSummary;
  expect(readOnlyReasonOf(line, undefined, 5)).toBeUndefined();
  expect(readOnlyReasonOf({ ...line, peerId: "system" }, undefined, 5)).toEqual({ kind: "system" });
  expect(readOnlyReasonOf({ ...inGroup, isActive: false }, group, 5)).toEqual({ kind: "left" });
  expect(readOnlyReasonOf(inGroup, { ...group, mutedUntil: 9 }, 5)).toEqual({ kind: "muted", until: 9 });
  expect(readOnlyReasonOf(inGroup, { ...group, mutedUntil: 9 }, 9)).toBeUndefined();
  expect(readOnlyReasonOf(inGroup, { ...group, mutedUntil: Number.MAX_SAFE_INTEGER }, 5)).toEqual({ kind: "muted" });
  expect(readOnlyReasonOf(inGroup, { ...group, mutedUntil: 9, myRole: "owner" }, 5)).toBeUndefined();
  expect(readOnlyReasonOf(inGroup, { ...group, isMuted: true }, 5)).toEqual({ kind: "adminsOnly" });
  expect(readOnlyReasonOf(inGroup, { ...group, isMuted: true, myRole: "admin" }, 5)).toBeUndefined();
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
  expect(parseIds(" ann, ben;ann\ncora，dan ")).toEqual(["ann", "ben", "cora", "dan"]);
});

test("a search wants all words, in names and ids", () => {
  const line = (name: string, peerId: string) => ({ name, peerId }) as ConversationSummary;
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
  expect(typedIds(all, " benny hill ")).toEqual(["benny"]); // a whole name
  expect(typedIds(all, "ben, nobody")).toEqual(["ben", "nobody"]);
  const twins = [...all, { id: "zoe2", name: "Zoe" }];
  expect(typedIds(twins, "Zoe")).toEqual(["Zoe"]); // ambiguous names are not resolved
});

test("a reset code may be spelled as one likes", () => {
  for (const code of ["A4DQ-OBYH-A4DQ-OBYH", "a4dqobyha4dqobyh", " a4dq obyh a4dq obyh "]) expect(resetCodeProblem(en, code)).toBeUndefined();
  for (const code of ["", " - ", "A4DQ-OBYH", "A4DQ-OBYH-A4DQ-OBY1"]) expect(resetCodeProblem(en, code), code).toBeDefined();
});

test("an invitation is a code or a link with one", () => {
  for (const text of ["k3v9-xw", " k3v9-xw\n", "https://chat.example/#/invite/k3v9-xw", "Join: https://chat.example/#/invite/k3v9-xw ."]) {
    expect(inviteCodeOf(text), text).toBe("k3v9-xw");
  }
  expect(inviteCodeOf("")).toBe("");
  expect(inviteCodeOf("%E0")).toBe("%E0");
});

test("an address leads where it came from", () => {
  for (const place of [{}, { invite: "a/b%" }, { conversation: "sg_x", person: "a/b%" }, { isSettings: true }, { conversation: "si_a_b" }, { conversation: "sg_x/y%", isInfo: true }]) {
    expect(parseHash(hashOf(place))).toEqual(place);
  }
  for (const hash of ["", "#", "#/c/", "#/invite/", "#/x/y"]) expect(parseHash(hash)).toEqual({});
  expect(parseHash("#/c/%E0%A4%A")).toEqual({ conversation: "%E0%A4%A" });
});

test("a link leads only to a conversation one can be in", () => {
  for (const own of ["si_alice_carol", "si_carol_dave", "sg_1024"]) expect(isOwnConversation("carol", own)).toBe(true);
  for (const other of ["si_alice_bob", "si_carol", "si_a_b_carol", "carol", ""]) expect(isOwnConversation("carol", other)).toBe(false);
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
