/** Whether a key belongs to an input method, which writes Chinese and others: Enter then takes a word, and sends nothing. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before it tells of the key that ended it; what it keeps is the old code.
  return event.isComposing || event.keyCode === 229;
}
