/** A text, each line of it so many columns further in. */
export function indented(text: string, columns = 2): string {
  return text.replaceAll(/^/gm, ' '.repeat(columns))
}
