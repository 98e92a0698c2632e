import { type Difference, selectDifferences } from '@tallystick/replay'
import { toOneLine } from '../command/text.ts'

const maxDifferences = 20
const maxValueCharacters = 200
const maxLines = 12
/** Characters shown of what two long values have in common, in front of the first that differs. */
const charactersBefore = 40

/** The names of the two values of a difference. */
type Sides = readonly [first: string, second: string]

/** Lists the differences of two events, with both values under the names of their sides. */
export function formatDifferences(differences: readonly Difference[], sides: Sides): string {
  const reported = selectDifferences(differences)
  const shown = reported.slice(0, maxDifferences).map((difference) => formatDifference(difference, sides))
  const left = reported.length - shown.length
  return `${shown.join('')}${left > 0 ? `  and ${left} more\n` : ''}`
}

function formatDifference({ path, recorded, happened }: Difference, [first, second]: Sides): string {
  const head = `  ${path}\n`
  if (/, from line \d+$/.test(path))
    return head + formatLines(first, recorded) + formatLines(second, happened)
  const [before, after] = [formatValue(recorded), formatValue(happened)]
  let same = 0
  while (same < before.length && before[same] === after[same]) same++
  const from = Math.max(0, same - charactersBefore)
  const show = (text: string): string =>
    (from > 0 ? '…' : '') + toOneLine(text.slice(from), maxValueCharacters)
  return `${head}    ${first} ${show(before)}\n    ${second} ${show(after)}\n`
}

/** Lines of a text, below each other. */
function formatLines(name: string, text: unknown): string {
  const lines = typeof text === 'string' ? text.split('\n') : ['nothing']
  const more = lines.length > maxLines ? [`… ${lines.length - maxLines} more lines`] : []
  const shown = lines.slice(0, maxLines).map((line) => toOneLine(line, maxValueCharacters))
  return [...shown, ...more]
    .map((line, index) => `    ${index === 0 ? name : ' '.repeat(name.length)} ${line}\n`)
    .join('')
}

function formatValue(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}
