import { codes, type Reason } from "./codes.js";

/** The server refused a request, with its reason. */
export class Refused extends Error {
  override readonly name = "Refused";

  constructor(
    readonly reason: Reason,
    message: string = codes[reason]?.text ?? reason,
    /** The HTTP status, if it came over HTTP. */
    readonly status?: number,
    /** When to retry, if the server said so. */
    readonly retryAfterMs?: number,
    /** Identifies the request in the server's log. */
    readonly requestId?: string,
  ) {
    super(message);
  }

  /** Temporary: the same request may succeed later. */
  get mayRetry(): boolean {
    return mayRetry(this.reason);
  }
}

/** No usable answer came; it is unknown whether the server handled the request. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** Whether a refusal is temporary. */
export function mayRetry(reason: string): boolean {
  return reason in codes && codes[reason as Reason].retry;
}

/** Whether it is temporary, so that a retry makes sense. */
export function isPassing(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof Refused && error.mayRetry);
}

const OVER: readonly Reason[] = [
  "missing_token",
  "invalid_token",
  "session_invalid",
  "unauthorized",
  "reauth_uid_mismatch",
  "kicked",
  "account_disabled",
];

/** Whether a refusal ends the sign-in. */
export function endsSession(reason: Reason): boolean {
  return OVER.includes(reason);
}
