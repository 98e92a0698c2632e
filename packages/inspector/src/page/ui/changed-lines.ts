/** Two texts, cut to the lines between their first and their last difference. */
export function cutToChange(
  before: string,
  after: string,
): { readonly before: string; readonly after: string } {
  const [old, young] = [before.split('\n'), after.split('\n')]
  const shortest = Math.min(old.length, young.length)
  let from = 0
  while (from < shortest && old[from] === young[from]) from++
  let end = 0
  while (end < shortest - from && old.at(-1 - end) === young.at(-1 - end)) end++
  return {
    before: old.slice(from, old.length - end).join('\n'),
    after: young.slice(from, young.length - end).join('\n'),
  }
}
