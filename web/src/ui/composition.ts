/** Whether a key belongs to an input method, such as for Chinese: Enter then accepts a word and must not send. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before the keydown event of the key that ended it; only the legacy key code
  // tells.
  return event.isComposing || event.keyCode === 229;
}
