import { errorText } from "./errorText.ts";

/** An action of a toast, such as Undo. */
interface ToastAction {
  text: string;
  act: () => void;
}

interface Toast {
  id: number;
  text: string;
  action?: ToastAction;
}

export const SHOWN_MS = 5_000;

/** Short notices at the edge of the page. */
class Toasts {
  all = $state.raw<readonly Toast[]>([]);
  /** The open dialogs, the uppermost last. The page behind a dialog is covered and inert, so the uppermost shows the toasts. */
  private dialogs = $state.raw<readonly string[]>([]);
  private last = 0;

  show(text: string, action?: ToastAction, shownMs = SHOWN_MS): void {
    this.last += 1;
    const toast: Toast = { id: this.last, text, ...(action && { action }) };
    const others = this.all.filter((one) => one.text !== text || one.action !== undefined);
    this.all = [...others, toast].slice(-3);
    setTimeout(() => this.remove(toast), shownMs);
  }

  /** Whether this dialog shows the toasts; without a dialog, whether the page does. */
  isShownIn(dialog: string | undefined): boolean {
    return this.dialogs.at(-1) === dialog;
  }

  /** Records that a dialog is open; returns a function that records its end. */
  openDialog(dialog: string): () => void {
    this.dialogs = [...this.dialogs, dialog];
    return () => (this.dialogs = this.dialogs.filter((one) => one !== dialog));
  }

  /** Runs the action of a toast. */
  runAction(toast: Toast): void {
    this.remove(toast);
    toast.action?.act();
  }

  private remove(toast: Toast): void {
    this.all = this.all.filter((one) => one !== toast);
  }

  /** Runs `act` and shows its error; returns whether it succeeded. */
  async attempt(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (error) {
      this.show(errorText(error));
      return false;
    }
  }
}

export const toasts = new Toasts();
