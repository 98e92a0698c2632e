import type { Difference } from '@tallystick/ledger'
import { oneLine } from './content-text.ts'

const differencesMax = 20
const valueCharactersMax = 200
/** Characters shown of what two long values have in common, in front of the first that differs. */
const charactersBefore = 40

/** Where two events differ, with both values under the names of their sides. */
export function differencesText(
  differences: readonly Difference[],
  [first, second]: readonly [first: string, second: string],
): string {
  const shown = differences.slice(0, differencesMax).map(({ path, recorded, happened }) => {
    const [before, after] = [valueText(recorded), valueText(happened)]
    const from = Math.max(0, sameCharacters(before, after) - charactersBefore)
    const show = (text: string): string =>
      (from > 0 ? '…' : '') + oneLine(text.slice(from), valueCharactersMax)
    return `  ${path}\n    ${first} ${show(before)}\n    ${second} ${show(after)}\n`
  })
  const left = differences.length - shown.length
  return `${shown.join('')}${left > 0 ? `  and ${left} more\n` : ''}`
}

function valueText(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}

/** How many characters two texts begin with alike. */
function sameCharacters(a: string, b: string): number {
  let count = 0
  while (count < a.length && a[count] === b[count]) count++
  return count
}
