/** Whether people may make accounts here themselves. Servers that do not say it let them. */
export async function isRegistrationOpen(): Promise<boolean> {
  try {
    const response = await fetch("/server/info");
    const told = (await response.json()) as { data?: { registration?: string } };
    return told.data?.registration !== "closed";
  } catch {
    return true; // the server itself refuses it
  }
}
