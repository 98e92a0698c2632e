/** At most `charactersMax` UTF-16 units of a text, with a mark where it was cut; never half of a surrogate pair. */
export function boundedText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text
  const mark = ' … (cut)'
  const kept = text.slice(0, Math.max(0, charactersMax - mark.length))
  return kept.replace(/[\ud800-\udbff]$/, '') + mark
}
