/** The limits of this server; until they are loaded, the defaults. */
export const limits = {
  textChars: 4096,
  /** How long a sender may recall a message. */
  recallMs: 120_000,
  /** How far the server's clock is ahead of ours; message times are by its clock. */
  clockAheadMs: 0,
};

export async function loadLimits(): Promise<void> {
  try {
    const response = await fetch("/server/info");
    const info = (await response.json()) as {
      data?: { limits?: { textCharsMax?: number; recallWindowMs?: number } };
    };
    limits.textChars = info.data?.limits?.textCharsMax ?? limits.textChars;
    limits.recallMs = info.data?.limits?.recallWindowMs ?? limits.recallMs;
    const ahead = Date.parse(response.headers.get("date") ?? "") - Date.now();
    // The header has whole seconds, and the answer took a moment.
    if (Math.abs(ahead) > 5_000) limits.clockAheadMs = ahead;
  } catch {
    // The server enforces its limits itself.
  }
}
