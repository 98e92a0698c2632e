import { lstatSync, type Stats } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { boundedText } from '../../../content/bounded-text.ts'
import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import { withPlace } from '../root/place.ts'
import { amount } from '../text/amounts.ts'
import { findPlaces, lineNumbersOf, placesOf } from '../text/places-of.ts'
import { hasWindowsLines, linesOf } from '../text/text-file.ts'
import { type FolderRules, requireFile, textAt } from './folder-rules.ts'
import { putFile } from './put-file.ts'
import { requireWritable, requireWritableFile } from './write-file.ts'

/** What `edit_file` is asked for. */
export interface EditFileInput {
  readonly path: string
  readonly oldText: string
  readonly newText: string
  readonly replaceAll?: boolean
}

const maxShownLines = 12
const maxShownCharacters = 300
/** Of so many occurrences the lines are looked up, to name the first of them. */
const maxCounted = 10_000
/** One edit replaces no more: none that is meant does. */
const maxReplacements = 1_000_000
/** Of a longer text no similar lines are sought. */
const maxCompared = 1_000_000

/** A part of a text: its first character, and the one behind its last. */
interface Range {
  readonly start: number
  readonly end: number
}

/** What an edit replaces in a text, and how many further occurrences begin within those. */
interface FoundText {
  readonly ranges: readonly Range[]
  readonly overlapping: number
  /** The new text for a range. */
  readonly newTextFor: (range: Range) => string
}

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
    const { ranges, overlapping, newTextFor } = await findText(text, input, signal)
    await requireWritableFile(folder.at(name), stats, input.path)
    const [first] = ranges
    if (first === undefined) throw new ToolError(notFound(shownPath, text, input.oldText))
    const count = ranges.length + overlapping
    const lines = lineNumbersOf(
      text,
      ranges.slice(0, maxCounted).map(({ start }) => start),
    )
    if (count > 1 && input.replaceAll !== true) throw new ToolError(notUnique(shownPath, count, lines))
    if (count > maxReplacements)
      throw new ToolError(
        `oldText occurs ${count} times in ${shownPath}, and one edit replaces at most ${maxReplacements}. Nothing was changed: give a longer oldText.`,
      )
    const growth = ranges.reduce(
      (sum, range) => sum + newTextFor(range).length - (range.end - range.start),
      0,
    )
    requireRoom(rules, shownPath, text.length + growth)
    const edited = await replaceRanges(text, ranges, newTextFor)
    requireWritable(rules, input.path, edited)
    const call = { idempotencyKey, attempt }
    await putFile(await rules.root.access(), { folder, name, text: edited, replaced: stats, call }, () => {
      signal.throwIfAborted()
      if (isUnchanged(stats, lstatSync(folder.at(name)))) return
      throw new ToolError(
        `${shownPath} was changed by another process during the call. Nothing was changed: read it again.`,
      )
    })
    const where = `at ${ranges.length === 1 ? 'line' : 'lines'} ${listed(lines)}`
    const shown = after(edited, { place: first.start, line: lines[0] ?? 1 }, newTextFor(first))
    return `Edited ${shownPath}: ${amount(ranges.length, 'replacement')} ${where}.${shown}`
  })
}

/**
 * Finds the text that an edit names. A model is shown lines without their ends, so where the exact text does not occur, line ends
 * make no difference, and what is written keeps those of the lines that it replaces.
 */
export async function findText(
  text: string,
  { oldText, newText }: Pick<EditFileInput, 'oldText' | 'newText'>,
  signal: AbortSignal,
): Promise<FoundText> {
  const usual = firstLineEnd(text, 0, text.length) ?? '\n'
  const isMixed = text.includes('\r\n') && !hasWindowsLines(text)
  if (isMixed || !hasWindowsLines(text) || oldText.includes('\r')) {
    const { places, overlapping } = await findPlaces(oldText, text, signal)
    if (places.length > 0 || !(text + oldText).includes('\r\n')) {
      const ranges = places.map((start) => ({ start, end: start + oldText.length }))
      return { ranges, overlapping, newTextFor: () => newText }
    }
  }
  // Each place in the text without CRs, as one in the text with them.
  const removed: number[] = []
  for (let at = text.indexOf('\r\n'); at !== -1; at = text.indexOf('\r\n', at + 2))
    removed.push(at - removed.length)
  const plain = withPlainLines(oldText)
  const { places, overlapping } = await findPlaces(plain, withPlainLines(text), signal)
  let before = 0
  const skip = (place: number): number => {
    while (before < removed.length && (removed[before] ?? 0) < place) before++
    return place + before
  }
  const ranges = places.map((place) => {
    const start = skip(place)
    return { start, end: skip(place + plain.length) }
  })
  const lines = withPlainLines(newText)
  const newTextFor = ({ start, end }: Range): string =>
    (firstLineEnd(text, start, end) ?? usual) === '\r\n' ? lines.replaceAll('\n', '\r\n') : lines
  return { ranges, overlapping, newTextFor }
}

function withPlainLines(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

/** How the first line in a part of a text ends; `undefined` where none does. */
function firstLineEnd(text: string, start: number, end: number): '\n' | '\r\n' | undefined {
  const at = text.indexOf('\n', start)
  if (at === -1 || at >= end) return undefined
  return at > start && text[at - 1] === '\r' ? '\r\n' : '\n'
}

/** Texts that are put together before the event loop has its turn. */
const maxPieces = 50_000

async function replaceRanges(
  text: string,
  ranges: readonly Range[],
  newTextFor: (range: Range) => string,
): Promise<string> {
  let [edited, end, pieces] = ['', 0, 0]
  for (const range of ranges) {
    edited += text.slice(end, range.start) + newTextFor(range)
    end = range.end
    if (++pieces % maxPieces === 0) await setImmediate()
  }
  return edited + text.slice(end)
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

function notUnique(path: string, count: number, lines: readonly number[]): string {
  return (
    `oldText occurs ${count} times in ${path}, at lines ${listed(lines)}. Nothing was changed. ` +
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
  if (text.length > maxCompared)
    return `${start} Read the file, and copy the text from it without the numbers of the lines.`
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

/** The lines that now hold the new text, with the one before and the one behind. */
function after(edited: string, { place, line }: { place: number; line: number }, newText: string): string {
  const count = linesOf(newText).length + 2
  let start = startOfLine(edited, place)
  if (line > 1) start = startOfLine(edited, start - 1)
  let end = start
  for (let each = 0; each < Math.min(count, maxShownLines) && end < edited.length; each++) {
    const next = edited.indexOf('\n', end)
    end = next === -1 ? edited.length : next + 1
  }
  const lines = linesOf(edited.slice(start, end))
  const first = Math.max(1, line - 1)
  const shown = lines.map((each, index) => `${first + index}\t${boundedText(each, maxShownCharacters)}`)
  return `\n${shown.join('\n')}${count > maxShownLines ? '\n…' : ''}`
}

function startOfLine(text: string, place: number): number {
  return place <= 0 ? 0 : text.lastIndexOf('\n', place - 1) + 1
}

function numbered(lines: readonly string[], first: number, count: number): string {
  const shown = lines
    .slice(first - 1, first - 1 + Math.min(count, maxShownLines))
    .map((line, index) => `${first + index}\t${boundedText(line, maxShownCharacters)}`)
  return shown.join('\n') + (count > maxShownLines ? '\n…' : '')
}
