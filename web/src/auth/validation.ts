import type { Texts } from "../texts/en.ts";

/** Validates input as the server does, before the request. Returns an error text, or nothing. */
export function userIdProblem(t: Texts, userId: string): string | undefined {
  if (userId === "") return t.entry.missingUserId;
  return /^[A-Za-z0-9.-]{1,64}$/.test(userId) ? undefined : t.entry.badUserId;
}

export function passwordProblem(t: Texts, password: string): string | undefined {
  const length = [...password].length;
  if (length === 0) return t.entry.missingPassword;
  if (length < 8) return t.entry.shortPassword;
  return length > 128 ? t.entry.longPassword : undefined;
}

export function nicknameProblem(t: Texts, nickname: string): string | undefined {
  const length = [...nickname.trim()].length;
  if (length === 0) return t.entry.missingNickname;
  return length > 128 ? t.reasons.bad_nickname : undefined;
}

/** A code from the operator; grouping and case do not matter. */
export function resetCodeProblem(t: Texts, code: string): string | undefined {
  const letters = code.replace(/[\s-]/g, "");
  if (letters === "") return t.reset.missingCode;
  return /^[A-Za-z2-7]{16}$/.test(letters) ? undefined : t.reset.badCode;
}

/** The code of an invitation, typed or pasted as a whole link. */
export function inviteCodeOf(text: string): string {
  const code = /#\/invite\/([^/?#\s]+)/.exec(text)?.[1] ?? text.trim();
  try {
    return decodeURIComponent(code);
  } catch {
    return code;
  }
}

/** Typed user ids, separated by spaces, commas or lines. */
export function parseIds(text: string): string[] {
  return [...new Set(text.split(/[\s,;，；、]+/).filter((id) => id !== ""))];
}
