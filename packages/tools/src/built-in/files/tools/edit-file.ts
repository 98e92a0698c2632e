import { lstatSync, type Stats } from 'node:fs'
import { boundedText } from '../../../content/bounded-text.ts'
import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import { withPlace } from '../root/place.ts'
import { amount } from '../text/amounts.ts'
import { lineNumbersOf, placesOf } from '../text/places-of.ts'
import { hasWindowsLines, linesOf } from '../text/text-file.ts'
import { type FolderRules, requireFile, textAt } from './folder-rules.ts'
import { putFile } from './put-file.ts'
import { requireWritable } from './write-file.ts'

/** What `edit_file` is asked for. */
export interface EditFileInput {
  readonly path: string
  readonly oldText: string
  readonly newText: string
  readonly replaceAll?: boolean
}

const maxShownLines = 12
const maxShownCharacters = 300

/** Replaces an exact text in a file: once, where it occurs once, or everywhere on request. */
export async function editFile(
  rules: FolderRules,
  input: EditFileInput,
  { signal, idempotencyKey, attempt }: ToolContext,
): Promise<string> {
  if (input.oldText === input.newText) {
    throw new ToolError('oldText and newText are the same, so there is nothing to change.')
  }
  return await withPlace(rules.root, partsOf(input.path), {}, async (place) => {
    const { folder, name } = requireFile(place)
    const { text, stats, path } = await textAt(rules, place, signal)
    const shownPath = quoted(pathText(path))
    const { oldText, newText } = inLinesOf(text, input)
    const places = placesOf(oldText, text)
    const lines = lineNumbersOf(text, places)
    const [firstLine] = lines
    if (firstLine === undefined) throw new ToolError(notFound(shownPath, text, oldText))
    if (places.length > 1 && input.replaceAll !== true) throw new ToolError(notUnique(shownPath, lines))
    requireRoom(rules, shownPath, text.length + places.length * (newText.length - oldText.length))
    const edited = replacedAt(places, text, { oldText, newText })
    requireWritable(rules, input.path, edited)
    const call = { idempotencyKey, attempt }
    const changed = { folder, name, text: edited, mode: stats.mode, call }
    await putFile(await rules.root.access(), changed, () => {
      signal.throwIfAborted()
      if (isUnchanged(stats, lstatSync(folder.at(name)))) return
      throw new ToolError(
        `${shownPath} was changed by another process during the call. Nothing was changed: read it again.`,
      )
    })
    const where = `at ${places.length === 1 ? 'line' : 'lines'} ${listed(lines)}`
    return `Edited ${shownPath}: ${amount(places.length, 'replacement')} ${where}.${after(edited, firstLine, newText)}`
  })
}

function replacedAt(
  places: readonly number[],
  text: string,
  { oldText, newText }: Pick<EditFileInput, 'oldText' | 'newText'>,
): string {
  const parts: string[] = []
  let end = 0
  for (const place of places) {
    parts.push(text.slice(end, place))
    end = place + oldText.length
  }
  return [...parts, text.slice(end)].join(newText)
}

/** Throws `ToolError` where the edited text would be too long, before it is made. */
function requireRoom({ maxFileBytes }: FolderRules, path: string, length: number): void {
  if (length <= maxFileBytes) return
  throw new ToolError(
    `${path} would have more than ${maxFileBytes} bytes, and at most that many are written. Nothing was changed.`,
  )
}

/**
 * Whether a file is the one that was read: what another process wrote meanwhile must not be lost. The time of its last change
 * rises with each write, also where a program sets the time of the write back; some file systems, such as FAT, keep only the latter.
 */
function isUnchanged(read: Stats, now: Stats): boolean {
  const facts = ['ino', 'size', 'mtimeMs', 'ctimeMs'] as const
  return facts.every((fact) => now[fact] === read[fact])
}

/** The texts with the line breaks of a file whose lines end with CR LF: a model is shown lines without them. */
export function inLinesOf(
  text: string,
  { oldText, newText }: Pick<EditFileInput, 'oldText' | 'newText'>,
): { readonly oldText: string; readonly newText: string } {
  if (!hasWindowsLines(text) || oldText.includes('\r')) return { oldText, newText }
  const converted = (each: string): string => each.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n')
  return { oldText: converted(oldText), newText: converted(newText) }
}

function notUnique(path: string, lines: readonly number[]): string {
  return (
    `oldText occurs ${lines.length} times in ${path}, at lines ${listed(lines)}. Nothing was changed. ` +
    'Give more of the text around the one that is meant, or set replaceAll to change all of them.'
  )
}

function listed(lines: readonly number[]): string {
  const shown = [...new Set(lines)]
  return shown.slice(0, maxShownLines).join(', ') + (shown.length > maxShownLines ? ' …' : '')
}

/** What was found instead: the same lines with other white space, or the first of them alone. */
function notFound(path: string, text: string, oldText: string): string {
  const start = `oldText does not occur in ${path}. Nothing was changed.`
  const wanted = linesOf(oldText).map((line) => line.trim())
  const lines = linesOf(text)
  const bare = (of: readonly string[]): string => `\n${of.join('\n')}\n`
  const inText = bare(lines.map((line) => line.trim()))
  // A line begins after the line break that ends the line before it, which counts as one of that line.
  const [first] = lineNumbersOf(inText, placesOf(bare(wanted), inText))
  if (first !== undefined && wanted.some((line) => line !== ''))
    return `${start} It occurs with other white space, as these lines:\n${numbered(lines, first, wanted.length)}`
  const [opening] = wanted.filter((line) => line !== '')
  const alone = lines.findIndex((line) => line.trim() === opening)
  if (alone === -1)
    return `${start} Read the file, and copy the text from it without the numbers of the lines.`
  return `${start} Its first line occurs, and what follows differs:\n${numbered(lines, alone + 1, wanted.length)}`
}

/** The lines that now hold the new text. */
function after(edited: string, line: number, newText: string): string {
  const count = linesOf(newText).length
  return `\n${numbered(linesOf(edited), Math.max(1, line - 1), count + 2)}`
}

function numbered(lines: readonly string[], first: number, count: number): string {
  const shown = lines
    .slice(first - 1, first - 1 + Math.min(count, maxShownLines))
    .map((line, index) => `${first + index}\t${boundedText(line, maxShownCharacters)}`)
  return shown.join('\n') + (count > maxShownLines ? '\n…' : '')
}
