/** Where one is, as the address tells it, so that going back works and a link leads there. */
export interface Place {
  conversation?: string;
  /** The details of the group are open, or the profile of whom one talks with. */
  isInfo?: boolean;
  /** Somebody's profile is open beside the conversation. */
  person?: string;
  isSettings?: boolean;
}

export function placeOf(hash: string): Place {
  const [first, second, third, fourth] = hash.replace(/^#\/?/, "").split("/");
  if (first === "settings") return { isSettings: true };
  if (first !== "c" || !second) return {};
  const conversation = decodeName(second);
  if (third === "u" && fourth) return { conversation, person: decodeName(fourth) };
  return third === "info" ? { conversation, isInfo: true } : { conversation };
}

export function hashOf(place: Place): string {
  if (place.isSettings) return "#/settings";
  if (place.conversation === undefined) return "#/";
  const detail = place.person !== undefined ? `/u/${encodeURIComponent(place.person)}` : place.isInfo ? "/info" : "";
  return `#/c/${encodeURIComponent(place.conversation)}${detail}`;
}

/** Whether it can be a conversation of this person: a private one names the two who are in it. */
export function mayBeOf(me: string, conversation: string): boolean {
  const [kind, ...names] = conversation.split("_");
  return kind === "sg" || (kind === "si" && names.length === 2 && names.includes(me));
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

class Route {
  place = $state.raw<Place>(placeOf(globalThis.location?.hash ?? ""));

  constructor() {
    globalThis.addEventListener?.("hashchange", () => {
      this.place = placeOf(location.hash);
    });
  }

  go(place: Place): void {
    location.hash = hashOf(place);
    this.place = place;
  }
}

export const route = new Route();
