/** Whether registration is open. Servers that do not report it have it open. */
export async function isRegistrationOpen(): Promise<boolean> {
  try {
    const response = await fetch("/server/info");
    const info = (await response.json()) as { data?: { registration?: string } };
    return info.data?.registration !== "closed";
  } catch {
    return true; // the server enforces it itself
  }
}
