/** The operator's own voice: it speaks to anybody, has no account, and takes no answers. */
export const SYSTEM = "system";
