import { settings } from "../settings.svelte.ts";
import { en, type Texts } from "./en.ts";
import { zh } from "./zh.ts";

export const languages = { en, zh } satisfies Record<string, Texts>;

/** The texts in the active language; reactive when read in a component. */
export const t = new Proxy({} as Texts, {
  get: (_, key) => languages[settings.activeLanguage][key as keyof Texts],
});
