import { sentenceOf } from "./failure.ts";

/** Something one can still do about it. */
interface Way {
  text: string;
  act: () => void;
}

interface Toast {
  id: number;
  text: string;
  way?: Way;
}

export const SHOWN_MS = 5_000;

/** Short words at the edge of the page. */
class Toasts {
  all = $state.raw<readonly Toast[]>([]);
  private last = 0;

  say(text: string, way?: Way, shownMs = SHOWN_MS): void {
    this.last += 1;
    const toast: Toast = { id: this.last, text, ...(way && { way }) };
    const others = this.all.filter((one) => one.text !== text || one.way !== undefined);
    this.all = [...others, toast].slice(-3);
    setTimeout(() => this.drop(toast), shownMs);
  }

  /** Somebody chose what can be done about it. */
  take(toast: Toast): void {
    this.drop(toast);
    toast.way?.act();
  }

  private drop(toast: Toast): void {
    this.all = this.all.filter((one) => one !== toast);
  }

  /** Does something, and says so if it fails. Whether it succeeded. */
  async attempt(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (error) {
      this.say(sentenceOf(error));
      return false;
    }
  }
}

export const toasts = new Toasts();
