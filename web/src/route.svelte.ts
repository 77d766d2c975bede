/** What is open, as encoded in the URL hash, so that Back and links work. */
export interface RouteState {
  conversation?: string;
  /** The group panel is open, or the profile of the peer. */
  isInfo?: boolean;
  /** The user whose profile is open beside the conversation. */
  person?: string;
  isSettings?: boolean;
  /** The code of an invite link: the sign-up form is open with it. */
  invite?: string;
}

export function parseHash(hash: string): RouteState {
  const [first, second, third, fourth] = hash.replace(/^#\/?/, "").split("/");
  if (first === "settings") return { isSettings: true };
  if (first === "invite" && second) return { invite: decodeId(second) };
  if (first !== "c" || !second) return {};
  const conversation = decodeId(second);
  if (third === "u" && fourth) return { conversation, person: decodeId(fourth) };
  return third === "info" ? { conversation, isInfo: true } : { conversation };
}

export function hashOf(place: RouteState): string {
  if (place.isSettings) return "#/settings";
  if (place.invite !== undefined) return `#/invite/${encodeURIComponent(place.invite)}`;
  if (place.conversation === undefined) return "#/";
  const detail = place.person !== undefined ? `/u/${encodeURIComponent(place.person)}` : place.isInfo ? "/info" : "";
  return `#/c/${encodeURIComponent(place.conversation)}${detail}`;
}

/** Whether `me` can be in this conversation: a private id names its two users. */
export function isOwnConversation(me: string, conversation: string): boolean {
  const [kind, ...names] = conversation.split("_");
  return kind === "sg" || (kind === "si" && names.length === 2 && names.includes(me));
}

function decodeId(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

class Route {
  current = $state.raw<RouteState>(parseHash(globalThis.location?.hash ?? ""));

  constructor() {
    globalThis.addEventListener?.("hashchange", () => {
      this.current = parseHash(location.hash);
    });
  }

  go(place: RouteState): void {
    location.hash = hashOf(place);
    this.current = place;
  }

  /** The same without a new entry in the history: Back does not return to what was open. */
  replace(place: RouteState): void {
    history.replaceState(null, "", hashOf(place));
    this.current = place;
  }
}

export const route = new Route();
