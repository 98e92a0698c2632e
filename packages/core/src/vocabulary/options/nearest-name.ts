/** The known name that a misspelt one most likely stands for; `undefined` where none is near. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  return nearestNames(given, known, 1)[0]
}

/** The known names that a misspelt one may stand for, the nearest first, `count` at most. */
export function nearestNames(given: string, known: readonly string[], count: number): readonly string[] {
  return known
    .flatMap((name) => {
      const distance = distanceBetween(given, name)
      return distance === undefined ? [] : [{ name, distance }]
    })
    .toSorted((one, other) => one.distance - other.distance)
    .slice(0, count)
    .map(({ name }) => name)
}

/** Names longer than this are compared by nothing: they are no misspelt options. */
const MAX_LENGTH = 64

/** How far two names are apart: in letters, or in the order of their words; `undefined` where too far. */
function distanceBetween(given: string, known: string): number | undefined {
  const [a, b] = [wordsOf(given), wordsOf(known)]
  if (given.length > MAX_LENGTH || a.length === 0) return undefined
  const within = a.every((word) => b.includes(word)) || b.every((word) => a.includes(word))
  const letters = Math.min(
    edits(given.toLowerCase(), known.toLowerCase()),
    edits(a.toSorted().join(''), b.toSorted().join('')),
  )
  if (letters <= Math.max(1, Math.floor((Math.min(given.length, known.length) + 1) / 3))) return letters
  // Such as `session` for `sessionId`: nearer than nothing, and farther than any misspelling.
  return within ? MAX_LENGTH + letters : undefined
}

function wordsOf(name: string): readonly string[] {
  return name.split(/(?=[A-Z])|[^A-Za-z0-9]/).flatMap((word) => (word === '' ? [] : [word.toLowerCase()]))
}

/** Letters to be changed, added, left out or swapped with their neighbour. */
function edits(a: string, b: string): number {
  let before: readonly number[] = []
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwap ? at(before, j - 2) + 1 : Infinity
      row.push(Math.min(at(last, j) + 1, at(row, j - 1) + 1, changed, swapped))
    }
    before = last
    last = row
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}
