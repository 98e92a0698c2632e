/** Longer names are cut: a model may ask for a tool by a name of any length. */
const maxName = 200

/** Half a surrogate pair is no text, and half of the receivers refuse NUL and its like in a name. */
// oxlint-disable-next-line no-control-regex
const unprintable = /[\u0000-\u001f\u007f-\u009f]/g

/** Returns a text from outside as a name, or an id: well formed, on one line, and not long. */
export function nameText(text: string): string {
  const cut = text.length > maxName ? `${text.slice(0, maxName)}…` : text
  return cut.toWellFormed().replace(unprintable, '\uFFFD')
}

/** Returns content as a receiver can take it: well formed, without NUL, and cut where it is longer than that. */
export function contentText(text: string, maxChars: number): string {
  const cut = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
  return cut.toWellFormed().replaceAll('\0', '\uFFFD')
}
