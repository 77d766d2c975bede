/** How long a text may be, as this server has it; until it has told, what servers have by default. */
export const limits = { textChars: 4096 };

export async function learnLimits(): Promise<void> {
  try {
    const response = await fetch("/server/info");
    const told = (await response.json()) as { data?: { limits?: { textCharsMax?: number } } };
    limits.textChars = told.data?.limits?.textCharsMax ?? limits.textChars;
  } catch {
    // The server itself refuses what is too long.
  }
}
