import type { Member } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { people } from "../people.svelte.ts";

/** Nicknames and avatars of members within a group, else those of their profile. */
class MemberProfiles {
  private readonly known = new SvelteMap<string, { name: string; avatar: string }>();

  name(conversationId: string, userId: string): string {
    return this.known.get(keyOf(conversationId, userId))?.name || people.name(userId);
  }

  avatar(conversationId: string, userId: string): string {
    return this.known.get(keyOf(conversationId, userId))?.avatar || people.avatar(userId);
  }

  /** All names a mention may use: that of the group, and that of the profile in older messages. */
  names(conversationId: string, userId: string): string[] {
    return [...new Set([this.name(conversationId, userId), people.name(userId)])];
  }

  update({ groupId, userId, groupNickname: name, groupAvatar: avatar }: Member): void {
    const key = keyOf(`sg_${groupId}`, userId);
    const before = this.known.get(key);
    if ((before?.name ?? "") === name && (before?.avatar ?? "") === avatar) return;
    if (name === "" && avatar === "") this.known.delete(key);
    else this.known.set(key, { name, avatar });
  }
}

function keyOf(conversationId: string, userId: string): string {
  return `${conversationId} ${userId}`;
}

export const memberProfiles = new MemberProfiles();
