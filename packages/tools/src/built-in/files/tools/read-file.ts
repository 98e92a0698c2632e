import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { pathText, quoted } from '../names/asked-path.ts'
import { amount, bytesOf } from '../text/amounts.ts'
import { hasWindowsLines, linesOf } from '../text/text-file.ts'
import { type FolderRules, readText } from './folder-rules.ts'

/** What `read_file` is asked for. */
export interface ReadFileInput {
  readonly path: string
  /** The first line shown, from 1. */
  readonly offset?: number
  /** How many lines are shown at most. */
  readonly limit?: number
  /** The first character shown of the first line, from 1. */
  readonly column?: number
}

/**
 * Shows a text file by lines. What the result says about the file comes first, and each line of the file follows its
 * number: nothing in a file can pass for the words of the tool.
 */
export async function readFile(
  rules: FolderRules,
  input: ReadFileInput,
  context: ToolContext,
): Promise<string> {
  const { text, path, size } = await readText(rules, input.path, context)
  const lines = linesOf(text)
  const { offset = 1, limit = Infinity, column = 1 } = input
  const shownPath = quoted(pathText(path))
  if (lines.length === 0) return `${shownPath} is empty.`
  requireIn(lines, { offset, column }, shownPath)
  const page = cut(lines.slice(offset - 1, offset - 1 + limit), { offset, column }, rules.maxBytes)
  const last = offset + page.shown.length - 1
  const isLast = last === lines.length && page.rest === ''
  const whole = isLast && offset === 1 && column === 1
  const which = whole ? amount(lines.length, 'line') : `lines ${offset} to ${last} of ${lines.length}`
  const from = column > 1 ? `, line ${offset} from column ${column}` : ''
  const more = page.rest === '' && !isLast ? ` Continue with offset ${last + 1}.` : page.rest
  const head = `${shownPath}: ${which}${from} (${amount(size, 'byte')}${endsOf(text, isLast)}).${more}`
  return [head, ...page.shown].join('\n')
}

/** Throws `ToolError` where a file has no such line, or a line no such character. */
function requireIn(lines: readonly string[], { offset, column }: Start, shownPath: string): void {
  const first = lines[offset - 1]
  if (first === undefined) {
    throw new ToolError(`${shownPath} has ${amount(lines.length, 'line')}: it has no line ${offset}.`)
  }
  if (column > 1 && column > first.length) {
    throw new ToolError(
      `Line ${offset} of ${shownPath} has ${amount(first.length, 'character')}: it has no column ${column}.`,
    )
  }
}

/** What the lines do not show about their ends. */
function endsOf(text: string, isLast: boolean): string {
  const ends = hasWindowsLines(text) ? ', lines end with CR LF' : ''
  return isLast && !text.endsWith('\n') ? `${ends}, without a line break at its end` : ends
}

interface Start {
  readonly offset: number
  readonly column: number
}

/** As many numbered lines as fit, and how to get what follows. */
function cut(
  lines: readonly string[],
  { offset, column }: Start,
  maxBytes: number,
): { readonly shown: readonly string[]; readonly rest: string } {
  const shown: string[] = []
  let left = maxBytes
  for (const [index, line] of lines.entries()) {
    const start = index === 0 ? column - 1 : 0
    const text = line.slice(start)
    const numbered = `${offset + index}\t${text}`
    left -= bytesOf(numbered) + 1
    if (left >= 0) shown.push(numbered)
    else if (index > 0)
      return { shown, rest: ` Cut at ${maxBytes} bytes: continue with offset ${offset + index}.` }
    else {
      const part = within(text, maxBytes)
      const next = `continue with offset ${offset} and column ${start + part.length + 1}`
      const rest = ` Line ${offset} has ${amount(line.length, 'character')} and is cut at ${maxBytes} bytes: ${next}.`
      return { shown: [`${offset}\t${part}`], rest }
    }
  }
  return { shown, rest: '' }
}

/** The beginning of a text that fits, one character at least; never half of a surrogate pair. */
function within(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.slice(0, maxBytes))
  let end = Math.min(bytes.length, maxBytes)
  while ((Number(bytes[end]) & 0xc0) === 0x80) end--
  const part = bytes.subarray(0, end).toString()
  const [first = ''] = text
  return part === '' ? first : part
}
