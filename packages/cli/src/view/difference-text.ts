import type { Difference } from '@tallystick/ledger'
import { oneLine } from './content-text.ts'

const differencesMax = 20
const valueCharactersMax = 200
const linesMax = 12
/** Characters shown of what two long values have in common, in front of the first that differs. */
const charactersBefore = 40

/** What the two values of a difference are called. */
type Sides = readonly [first: string, second: string]

/**
 * Where two events differ, with both values under the names of their sides. Digests are left out beside what they are
 * digests of.
 */
export function differencesText(differences: readonly Difference[], sides: Sides): string {
  const told = differences.filter(({ path }) => !/(^|\.)(d|\w+D)igest$/.test(path))
  const all = told.length > 0 ? told : differences
  const shown = all.slice(0, differencesMax).map((difference) => differenceText(difference, sides))
  const left = all.length - shown.length
  return `${shown.join('')}${left > 0 ? `  and ${left} more\n` : ''}`
}

function differenceText({ path, recorded, happened }: Difference, [first, second]: Sides): string {
  if (typeof recorded === 'string' && typeof happened === 'string') {
    const [before, after] = [recorded.split('\n'), happened.split('\n')]
    if (before.length > 1 || after.length > 1) return linesText(path, [before, after], [first, second])
  }
  const [before, after] = [valueText(recorded), valueText(happened)]
  const from = Math.max(0, sameFromTheFirst(before, after) - charactersBefore)
  const show = (text: string): string => (from > 0 ? '…' : '') + oneLine(text.slice(from), valueCharactersMax)
  return `  ${path}\n    ${first} ${show(before)}\n    ${second} ${show(after)}\n`
}

/** Of texts of several lines those that are not the same at both ends. */
function linesText(
  path: string,
  [before, after]: readonly [readonly string[], readonly string[]],
  [first, second]: Sides,
): string {
  const start = sameFromTheFirst(before, after)
  const length = Math.min(before.length, after.length) - start
  const end = Math.min(length, sameFromTheFirst(before.toReversed(), after.toReversed()))
  const side = (name: string, lines: readonly string[]): string => {
    const changed = lines.slice(start, lines.length - end)
    const more = changed.length > linesMax ? [`… ${changed.length - linesMax} more lines`] : []
    const shown = changed.slice(0, linesMax).map((line) => oneLine(line, valueCharactersMax))
    const told = changed.length === 0 ? ['nothing'] : [...shown, ...more]
    return told.map((line, index) => `    ${index === 0 ? name : ' '.repeat(name.length)} ${line}\n`).join('')
  }
  return `  ${path}, from line ${start + 1}\n${side(first, before)}${side(second, after)}`
}

function valueText(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}

/** How many items two lists, or characters two texts, begin with alike. */
function sameFromTheFirst(a: ArrayLike<string>, b: ArrayLike<string>): number {
  let count = 0
  while (count < a.length && a[count] === b[count]) count++
  return count
}
