/** At most `maxCharacters` UTF-16 units of a text, with a mark where it was cut; never half of a surrogate pair. */
export function boundedText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const mark = ' … (cut)'
  const kept = text.slice(0, Math.max(0, maxCharacters - mark.length))
  return kept.replace(/[\ud800-\udbff]$/, '') + mark
}
