import { t } from "./texts/t.svelte.ts";
import { toasts } from "./toasts.svelte.ts";

/** Whether it brings files, and not only text. */
export function bringsFiles(data: DataTransfer | null): boolean {
  return data !== null && [...data.types].includes("Files");
}

/** A browser opens a file that is dropped on a page instead of the page. Until files can be sent, that is said. */
export function refuseFiles(): void {
  addEventListener("dragover", (event) => {
    if (!bringsFiles(event.dataTransfer)) return;
    event.preventDefault();
    event.dataTransfer!.dropEffect = "copy"; // so that the drop comes, and can be answered
  });
  addEventListener("drop", (event) => {
    if (!bringsFiles(event.dataTransfer)) return;
    event.preventDefault();
    toasts.say(t.chat.noFiles);
  });
}
