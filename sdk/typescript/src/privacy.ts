import { camelName, snakeName } from "./casing.js";
import type { Http } from "./http.js";

/** Whom you let do something: `sharedGroup` are the people you share a group or a conversation with. */
export type Audience = "everybody" | "sharedGroup" | "nobody";

/** Who may contact you and see you. Conversations that have begun go on. */
export interface Consent {
  /** Who may begin a conversation with you. */
  readonly write: Audience;
  /** Who may add you to groups. */
  readonly invite: Audience;
  /** Who sees whether you are online. Only people you share a conversation with can, so `everybody` means them. */
  readonly online: Audience;
  /** Who sees when you were last online; likewise. */
  readonly lastSeen: Audience;
}

interface WireConsent {
  write: string;
  invite: string;
  online: string;
  last_seen: string;
}

export async function getConsent(http: Http): Promise<Consent> {
  return consentOf(await http.get<WireConsent>("/user/consent"));
}

/** Changes the given choices; returns all of them. */
export async function putConsent(http: Http, choices: Partial<Consent>): Promise<Consent> {
  const given = Object.entries(choices).filter(([, audience]) => audience !== undefined);
  const body = Object.fromEntries(given.map(([name, audience]) => [snakeName(name), snakeName(audience)]));
  return consentOf(await http.put<WireConsent>("/user/consent", body));
}

/** The ids of all users you blocked. */
export async function listBlocked(http: Http): Promise<string[]> {
  const userIds: string[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: 1000, cursor };
    const page = await http.get<{ user_ids: string[]; next_cursor?: string }>("/user/blocks", query);
    userIds.push(...page.user_ids);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return userIds;
}

function consentOf({ write, invite, online, last_seen }: WireConsent): Consent {
  const audience = (word: string) => camelName(word) as Audience;
  return { write: audience(write), invite: audience(invite), online: audience(online), lastSeen: audience(last_seen) };
}
