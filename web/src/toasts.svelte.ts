import { sentenceOf } from "./failure.ts";

interface Toast {
  id: number;
  text: string;
}

const SHOWN_MS = 5_000;

/** Short words at the edge of the page. */
class Toasts {
  all = $state.raw<readonly Toast[]>([]);
  private last = 0;

  say(text: string): void {
    this.last += 1;
    const toast = { id: this.last, text };
    this.all = [...this.all.filter((one) => one.text !== text), toast].slice(-3);
    setTimeout(() => {
      this.all = this.all.filter((one) => one !== toast);
    }, SHOWN_MS);
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
