import { settings } from "../settings.svelte.ts";
import { en, type Texts } from "./en.ts";
import { zh } from "./zh.ts";

export const languages = { en, zh } satisfies Record<string, Texts>;

/** The texts in the chosen language: read in a component, it follows the choice. */
export const t = new Proxy({} as Texts, {
  get: (_, key) => languages[settings.spoken][key as keyof Texts],
});
