/** Who can create an account: everyone, people with an invitation, or no one. */
export type Registration = "open" | "invite" | "closed";

/** Who can create an account here. Servers that do not report it have registration open. */
export async function loadRegistration(): Promise<Registration> {
  try {
    const response = await fetch("/server/info");
    const info = (await response.json()) as { data?: { registration?: string } };
    const policy = info.data?.registration;
    return policy === "invite" || policy === "closed" ? policy : "open";
  } catch {
    return "open"; // the server enforces it itself
  }
}
