import { read, write } from "./kept.ts";

export type Theme = "auto" | "light" | "dark";
export type Language = "auto" | "en" | "zh";

/** The first language of the browser that we speak. */
const browser = languageOf(globalThis.navigator?.languages ?? []);

export function languageOf(wanted: readonly string[]): "en" | "zh" {
  const known = wanted.find((one) => /^(en|zh)\b/i.test(one));
  return known !== undefined && /^zh/i.test(known) ? "zh" : "en";
}

/** What somebody chose on this device. */
class Settings {
  theme = $state<Theme>(read("theme") ?? "auto");
  language = $state<Language>(read("language") ?? "auto");
  notify = $state<boolean>(read("notify") ?? false);

  /** The language of the page. */
  get spoken(): "en" | "zh" {
    return this.language === "auto" ? browser : this.language;
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    write("theme", theme);
  }

  setLanguage(language: Language): void {
    this.language = language;
    write("language", language);
  }

  setNotify(notify: boolean): void {
    this.notify = notify;
    write("notify", notify);
  }

  /** Lets the page follow, for as long as it lives. */
  apply(): void {
    $effect.root(() => {
      $effect(() => {
        document.documentElement.dataset["theme"] = this.theme;
        document.documentElement.lang = this.spoken === "zh" ? "zh-CN" : "en";
      });
    });
  }
}

export const settings = new Settings();
