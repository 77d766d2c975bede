/** The operator's account: it can message any user and takes no replies. */
export const SYSTEM = "system";
