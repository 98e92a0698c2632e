import { lstatSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import type { ReconcileAnswer, ReconcileContext } from '../../define/define-tool.ts'
import { ToolError } from '../../define/outcome.ts'
import type { ToolContext } from '../../define/run-tool.ts'
import { boundText } from '../../define/text.ts'
import { splitPath, joinPath, quotePath } from './names.ts'
import { type Place, readStats, withPlace } from './root.ts'
import {
  formatCount,
  findPlaces,
  type FolderRules,
  hasWindowsLines,
  numberLines,
  splitLines,
  findAllPlaces,
  requireFile,
  readTextAt,
} from './text.ts'
import {
  findLeftBy,
  type MoveFileInput,
  putFile,
  requireWritable,
  requireWritableFile,
  type WriteFileInput,
} from './write.ts'

interface EditFileInput {
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

/** Replaces an exact text in a file: the only occurrence, or all on request. */
export async function editFile(
  rules: FolderRules,
  input: EditFileInput,
  { signal, idempotencyKey, attempt }: ToolContext,
): Promise<string> {
  if (input.oldText === input.newText) {
    throw new ToolError('oldText and newText are the same, so there is nothing to change.')
  }
  return await withPlace(rules.root, splitPath(input.path), {}, async (place) => {
    const { folder, name } = requireFile(place)
    const { text, stats, path } = await readTextAt(rules, place, signal)
    const shownPath = quotePath(joinPath(path))
    const { ranges, overlapping, newTextFor } = await findText(text, input, signal)
    await requireWritableFile(folder.at(name), stats, input.path)
    const [first] = ranges
    if (first === undefined) throw new ToolError(describeNotFound(shownPath, text, input.oldText))
    const count = ranges.length + overlapping
    const lines = numberLines(
      text,
      ranges.slice(0, maxCounted).map(({ start }) => start),
    )
    if (count > 1 && input.replaceAll !== true)
      throw new ToolError(
        `oldText occurs ${count} times in ${shownPath}, at lines ${listPlaces(lines)}. Nothing was changed. ` +
          'Give more of the text around the one that is meant, or set replaceAll to change all of them.',
      )
    if (count > maxReplacements)
      throw new ToolError(
        `oldText occurs ${count} times in ${shownPath}, and one edit replaces at most ${maxReplacements}. Nothing was changed: give a longer oldText.`,
      )
    const growth = ranges.reduce(
      (sum, range) => sum + newTextFor(range).length - (range.end - range.start),
      0,
    )
    // Before the edited text is made.
    if (text.length + growth > rules.maxFileBytes)
      throw new ToolError(
        `${shownPath} would have more than ${rules.maxFileBytes} bytes, and at most that many are written. Nothing was changed.`,
      )
    const edited = await replaceRanges(text, ranges, newTextFor)
    requireWritable(rules, input.path, edited)
    const call = { idempotencyKey, attempt }
    await putFile(await rules.root.access(), { folder, name, text: edited, replaced: stats, call }, () => {
      signal.throwIfAborted()
      // Writes of another process since then must not be lost. ctime rises with each write, also where a program sets mtime back;
      // some file systems, such as FAT, keep only the latter.
      const now = lstatSync(folder.at(name))
      const facts = ['ino', 'size', 'mtimeMs', 'ctimeMs'] as const
      if (facts.every((fact) => now[fact] === stats[fact])) return
      throw new ToolError(
        `${shownPath} was changed by another process during the call. Nothing was changed: read it again.`,
      )
    })
    const where = `at ${ranges.length === 1 ? 'line' : 'lines'} ${listPlaces(lines)}`
    const shown = showAround(edited, { place: first.start, line: lines[0] ?? 1 }, newTextFor(first))
    return `Edited ${shownPath}: ${formatCount(ranges.length, 'replacement')} ${where}.${shown}`
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
): Promise<{
  readonly ranges: readonly Range[]
  readonly overlapping: number
  /** The new text for a range. */
  readonly newTextFor: (range: Range) => string
}> {
  const usual = findLineEnd(text, 0, text.length) ?? '\n'
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
    (findLineEnd(text, start, end) ?? usual) === '\r\n' ? lines.replaceAll('\n', '\r\n') : lines
  return { ranges, overlapping, newTextFor }
}

function withPlainLines(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

/** How the first line in a part of a text ends; `undefined` if none does. */
function findLineEnd(text: string, start: number, end: number): '\n' | '\r\n' | undefined {
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

function listPlaces(lines: readonly number[]): string {
  const shown = [...new Set(lines)]
  return shown.slice(0, maxShownLines).join(', ') + (shown.length > maxShownLines ? ' …' : '')
}

/** Says what is there instead: the same lines with other white space, or the first of them alone. */
function describeNotFound(path: string, text: string, oldText: string): string {
  const start = `oldText does not occur in ${path}. Nothing was changed.`
  if (text.length > maxCompared)
    return `${start} Read the file, and copy the text from it without the numbers of the lines.`
  const wanted = splitLines(oldText).map((line) => line.trim())
  const lines = splitLines(text)
  const bare = (of: readonly string[]): string => `\n${of.join('\n')}\n`
  const inText = bare(lines.map((line) => line.trim()))
  // A line begins after the line break that ends the line before it, which counts as one of that line.
  const [first] = numberLines(inText, findAllPlaces(bare(wanted), inText))
  if (first !== undefined && wanted.some((line) => line !== ''))
    return `${start} It occurs with other white space, as these lines:\n${showNumbered(lines.slice(first - 1), first, wanted.length)}`
  const [opening] = wanted.filter((line) => line !== '')
  const alone = lines.findIndex((line) => line.trim() === opening)
  if (alone === -1)
    return `${start} Read the file, and copy the text from it without the numbers of the lines.`
  return `${start} Its first line occurs, and what follows differs:\n${showNumbered(lines.slice(alone), alone + 1, wanted.length)}`
}

/** The lines that now hold the new text, with the one before and the one behind. */
function showAround(
  edited: string,
  { place, line }: { place: number; line: number },
  newText: string,
): string {
  const count = splitLines(newText).length + 2
  let start = findLineStart(edited, place)
  if (line > 1) start = findLineStart(edited, start - 1)
  let end = start
  for (let each = 0; each < Math.min(count, maxShownLines) && end < edited.length; each++) {
    const next = edited.indexOf('\n', end)
    end = next === -1 ? edited.length : next + 1
  }
  return `\n${showNumbered(splitLines(edited.slice(start, end)), Math.max(1, line - 1), count)}`
}

function findLineStart(text: string, place: number): number {
  return place <= 0 ? 0 : text.lastIndexOf('\n', place - 1) + 1
}

/** The first of `count` lines after their numbers, with a mark where not all of them are shown. */
function showNumbered(lines: readonly string[], first: number, count: number): string {
  const shown = lines
    .slice(0, Math.min(count, maxShownLines))
    .map((line, index) => `${first + index}\t${boundText(line, maxShownCharacters)}`)
  return shown.join('\n') + (count > maxShownLines ? '\n…' : '')
}

const never = new AbortController().signal

/**
 * Finds out if a write took place. A file with that text says yes. The text in a file beside it, which had not taken the name yet, says
 * no. Another text, or no file, says neither: another process may have changed what was written.
 */
export async function reconcileWrite(
  rules: FolderRules,
  { path, content }: WriteFileInput,
  doubt: Pick<ReconcileContext, 'idempotencyKey'>,
): Promise<ReconcileAnswer> {
  const found = await readTextNow(rules, path)
  if (found?.text === content) {
    return {
      happened: true,
      result: `${found.shown} holds exactly this text. A look after a crash found it.`,
    }
  }
  return await answerByTextLeft(rules, path, doubt)
}

/**
 * Finds out if an edit took place. The edited text in a file beside it says no, and so does an occurrence of oldText that no edit can
 * have left there. An oldText that is gone says nothing: it may never have been there.
 */
export async function reconcileEdit(
  rules: FolderRules,
  input: EditFileInput,
  doubt: Pick<ReconcileContext, 'idempotencyKey'>,
): Promise<ReconcileAnswer> {
  const found = await readTextNow(rules, input.path)
  const { text = '' } = found ?? {}
  const { ranges, newTextFor } = await findText(text, input, never)
  const isUntouched = ranges.some((range) => !mayBeLeft(range, text, newTextFor(range)))
  return isUntouched ? { happened: false } : await answerByTextLeft(rules, input.path, doubt)
}

/**
 * Finds out if a move took place. A file or folder that is at its old path, while the new one is free, was not moved; where it is
 * missing at the old path, it may never have been there.
 */
export async function reconcileMove(
  rules: FolderRules,
  { from, to }: MoveFileInput,
): Promise<ReconcileAnswer> {
  const [source, target] = [await isThere(rules, from), await isThere(rules, to)]
  return source && !target ? { happened: false } : 'unknown'
}

/**
 * True if an edit may have left this occurrence of oldText: it reaches into a newText, as `ab` does in `aabb` without its `ab`,
 * or in what `ab` became by `ab` → `abab`.
 */
function mayBeLeft({ start, end }: Range, text: string, newText: string): boolean {
  if (newText === '') return end - start > 1
  const around = text.slice(Math.max(0, start - newText.length + 1), end + newText.length - 1)
  return findAllPlaces(newText, around).length > 0
}

/** The text of a file now; `undefined` if these tools read no file. */
async function readTextNow(
  rules: FolderRules,
  path: string,
): Promise<{ readonly text: string; readonly shown: string } | undefined> {
  return await answerFound(rules, splitPath(path), async (place) => {
    const { text, path: names } = await readTextAt(rules, place, never)
    return { text, shown: quotePath(joinPath(names)) }
  })
}

/** A text that the call had written beside the file: it takes the name of the file as the last step. */
async function answerByTextLeft(
  rules: FolderRules,
  path: string,
  { idempotencyKey }: Pick<ReconcileContext, 'idempotencyKey'>,
): Promise<ReconcileAnswer> {
  const parts = splitPath(path)
  const beside = async ({ folder }: Place): Promise<boolean> =>
    (await findLeftBy(folder, idempotencyKey)).length > 0
  const isLeft =
    (await answerFound(rules, parts, beside)) ?? (await answerFound(rules, parts.slice(0, -1), beside))
  return isLeft === true ? { happened: false } : 'unknown'
}

async function isThere(rules: FolderRules, path: string): Promise<boolean> {
  const parts = splitPath(path)
  const entry = async ({ folder, name: notFolder }: Place): Promise<boolean> =>
    notFolder === undefined && (await readStats(folder.at(parts.at(-1) ?? '.'))) !== undefined
  return (await answerFound(rules, parts.slice(0, -1), entry)) ?? false
}

/** `undefined` if nothing is, or nothing that these tools show. */
async function answerFound<Result>(
  { root }: FolderRules,
  parts: readonly string[],
  look: (place: Place) => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await withPlace(root, parts, {}, look)
  } catch (error) {
    if (error instanceof ToolError) return undefined
    throw error
  }
}
