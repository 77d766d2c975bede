import { read, write } from "./localStorage.ts";

export type Theme = "auto" | "light" | "dark";
export type Language = "auto" | "en" | "zh";

/** The first language of the browser that is supported. */
const browser = languageOf(globalThis.navigator?.languages ?? []);

export function languageOf(wanted: readonly string[]): "en" | "zh" {
  const known = wanted.find((one) => /^(en|zh)\b/i.test(one));
  return known !== undefined && /^zh/i.test(known) ? "zh" : "en";
}

/** The settings of this device. */
class Settings {
  theme = $state<Theme>(read("theme") ?? "auto");
  language = $state<Language>(read("language") ?? "auto");
  notify = $state<boolean>(read("notify") ?? false);

  /** The language of the page. */
  get activeLanguage(): "en" | "zh" {
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

  /** Applies theme and language to the page, and follows changes. */
  apply(): void {
    $effect.root(() => {
      $effect(() => {
        document.documentElement.dataset["theme"] = this.theme;
        document.documentElement.lang = this.activeLanguage === "zh" ? "zh-CN" : "en";
      });
    });
  }
}

export const settings = new Settings();
