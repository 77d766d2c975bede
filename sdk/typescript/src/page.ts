import type { Off } from "./events.js";

/** In a browser: calls back when the page becomes visible and when the network is back. */
export function watchPage(call: () => void): Off {
  if (typeof document === "undefined" || typeof window === "undefined") return () => {};
  const seen = () => {
    if (document.visibilityState === "visible") call();
  };
  document.addEventListener("visibilitychange", seen);
  window.addEventListener("online", call);
  return () => {
    document.removeEventListener("visibilitychange", seen);
    window.removeEventListener("online", call);
  };
}
