/** What this server allows; until it has told, what servers allow by default. */
export const limits = {
  textChars: 4096,
  /** So long one may take back what one said. */
  recallMs: 120_000,
  /** What its clock is ahead of ours; times of messages are its times. */
  aheadMs: 0,
};

export async function learnLimits(): Promise<void> {
  try {
    const response = await fetch("/server/info");
    const told = (await response.json()) as {
      data?: { limits?: { textCharsMax?: number; recallWindowMs?: number } };
    };
    limits.textChars = told.data?.limits?.textCharsMax ?? limits.textChars;
    limits.recallMs = told.data?.limits?.recallWindowMs ?? limits.recallMs;
    const ahead = Date.parse(response.headers.get("date") ?? "") - Date.now();
    // The header has whole seconds, and the answer took a moment.
    if (Math.abs(ahead) > 5_000) limits.aheadMs = ahead;
  } catch {
    // The server itself refuses what it does not allow.
  }
}
