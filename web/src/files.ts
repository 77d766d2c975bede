import { t } from "./texts/t.svelte.ts";
import { toasts } from "./toasts.svelte.ts";

/** Whether a drop or paste contains files. */
export function hasFiles(data: DataTransfer | null): boolean {
  return data !== null && [...data.types].includes("Files");
}

/**
 * A browser replaces the page with a file that is dropped on it. Files cannot be sent yet, so the drop is
 * refused with a message.
 */
export function refuseFiles(): void {
  addEventListener("dragover", (event) => {
    if (!hasFiles(event.dataTransfer)) return;
    event.preventDefault();
    event.dataTransfer!.dropEffect = "copy"; // otherwise there is no drop event
  });
  addEventListener("drop", (event) => {
    if (!hasFiles(event.dataTransfer)) return;
    event.preventDefault();
    toasts.show(t.chat.noFiles);
  });
}
