import type { ToolContext } from '../../../execution/executor.ts'
import { boundedText } from '../../../content/bounded-text.ts'
import { foldCase } from '../../../content/fold-case.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import type { Folder } from '../root/folder.ts'
import { type Place, withPlace } from '../root/place.ts'
import { amount, bytesOf } from '../text/amounts.ts'
import { linesWith, placeOf } from '../text/places-of.ts'
import { type FileText, linesOf, textOfFile } from '../text/text-file.ts'
import { askedGlob } from './find-files.ts'
import type { FolderRules } from './folder-rules.ts'
import { type Left, leftText, nothingLeft, walk } from './walk.ts'

/** What `search_files` is asked for. */
export interface SearchFilesInput {
  readonly text: string
  readonly path?: string
  readonly glob?: string
  readonly ignoreCase?: boolean
  readonly context?: number
}

/** Characters shown of one line. */
const maxLineCharacters = 300

/** What a search has found, and what it has passed over. */
interface Search {
  readonly lines: string[]
  bytes: number
  matches: number
  files: number
  isFull: boolean
  binary: number
  tooLarge: number
  unreadable: number
}

/**
 * Finds the lines that hold a text, below the path of their file. Lines are indented and numbered, so that none passes
 * for the path of a file or for the words of the tool.
 */
export async function searchFiles(
  rules: FolderRules,
  input: SearchFilesInput,
  { signal }: ToolContext,
): Promise<string> {
  if (/[\r\n]/.test(input.text)) {
    throw new ToolError(
      'The text holds a line break, and lines are searched one by one. Search for one line of it.',
    )
  }
  const matches = input.glob === undefined ? () => true : askedGlob(input.glob)
  const search: Search = {
    lines: [],
    bytes: 0,
    matches: 0,
    files: 0,
    isFull: false,
    binary: 0,
    tooLarge: 0,
    unreadable: 0,
  }
  const left = nothingLeft()
  return await withPlace(rules.root, partsOf(input.path ?? '.'), {}, async (place) => {
    for await (const { folder, name, path } of filesAt(rules, place, signal, left)) {
      if (!matches(pathText(place.name === undefined ? path.slice(place.path.length) : path.slice(-1))))
        continue
      const read = await textIn(rules, folder, name, signal)
      if (read?.kind === 'text')
        collect(search, rules, path, matchesIn(read.text, input, rules.maxEntries + 1))
      else search[read === undefined ? 'unreadable' : read.kind === 'binary' ? 'binary' : 'tooLarge']++
      if (search.isFull) break
    }
    return [
      `${headOf(search, rules, input, place)}${leftText(left, rules.maxVisited)}`,
      ...search.lines,
    ].join('\n')
  })
}

/** The file at a place, or the files below it. */
async function* filesAt(
  rules: FolderRules,
  { folder, name, path }: Place,
  signal: AbortSignal,
  left: Left,
): AsyncGenerator<{ readonly folder: Folder; readonly name: string; readonly path: readonly string[] }> {
  if (name !== undefined) return yield { folder, name, path }
  for await (const entry of walk(rules, folder, signal, left)) {
    if (entry.kind === 'file') yield entry
  }
}

async function textIn(
  rules: FolderRules,
  folder: Folder,
  name: string,
  signal: AbortSignal,
): Promise<FileText | undefined> {
  const access = await rules.root.access()
  const file = await access.openFile(folder, name).catch(() => undefined)
  if (file === undefined) return undefined
  try {
    return await textOfFile(file, rules.maxFileBytes, signal)
  } finally {
    await file.close()
  }
}

/** A line to show: one that matches, or one near it. */
interface ShownLine {
  readonly number: number
  readonly text: string
  readonly isMatch: boolean
  /** Lines between this one and the one before it are not shown. */
  readonly isApart: boolean
}

function matchesIn(text: string, input: SearchFilesInput, count: number): readonly ShownLine[] {
  const { text: sought, ignoreCase = false, context = 0 } = input
  const [where, what] = ignoreCase ? [foldCase(text), foldCase(sought)] : [text, sought]
  const numbers = new Set(linesWith(what, where, count))
  if (numbers.size === 0) return []
  const lines = linesOf(text)
  const shown: ShownLine[] = []
  for (const number of numbers) {
    const last = shown.at(-1)?.number
    const [from, to] = [Math.max((last ?? 0) + 1, number - context), Math.min(lines.length, number + context)]
    const isApart = context > 0 && from > (last ?? from) + 1
    for (const [index, line] of lines.slice(from - 1, to).entries()) {
      const near = from + index
      shown.push({ number: near, text: line, isMatch: numbers.has(near), isApart: isApart && near === from })
    }
  }
  return shown.map((line) => ({ ...line, text: aroundMatch(line.text, sought, ignoreCase) }))
}

/** A line, or the part of a long one in which the text is. */
function aroundMatch(line: string, sought: string, ignoreCase: boolean): string {
  if (line.length <= maxLineCharacters) return line
  const [where, what] = ignoreCase ? [foldCase(line), foldCase(sought)] : [line, sought]
  const start = Math.max(0, placeOf(what, where) - maxLineCharacters / 3)
  const part = boundedText(line.slice(start), maxLineCharacters)
  return start === 0 ? part : `… ${part}`.toWellFormed()
}

function collect(
  search: Search,
  rules: FolderRules,
  path: readonly string[],
  lines: readonly ShownLine[],
): void {
  if (lines.length === 0) return
  if (!add(search, rules, pathText(path))) return
  search.files++
  for (const { number, text, isMatch, isApart } of lines) {
    if (isMatch && search.matches >= rules.maxEntries) {
      search.isFull = true
      return
    }
    if (isApart && !add(search, rules, '  …')) return
    if (!add(search, rules, `  ${number}${isMatch ? ':' : '-'} ${text}`)) return
    if (isMatch) search.matches++
  }
}

function add(search: Search, { maxBytes }: FolderRules, line: string): boolean {
  search.bytes += bytesOf(line) + 1
  if (search.bytes > maxBytes) search.isFull = true
  else search.lines.push(line)
  return !search.isFull
}

function headOf(
  search: Search,
  { maxFileBytes }: FolderRules,
  { text }: SearchFilesInput,
  { path }: Place,
): string {
  const where = path.length === 0 ? '' : ` in ${quoted(pathText(path))}`
  const files = search.matches === 0 ? '' : ` in ${amount(search.files, 'file')}`
  const more = search.isFull
    ? ' These are the first; there are more. Search for a longer text, or name a glob or a folder.'
    : ''
  const passed = [
    ...(search.binary > 0 ? [`${search.binary} binary`] : []),
    ...(search.tooLarge > 0 ? [`${search.tooLarge} larger than ${maxFileBytes} bytes`] : []),
    ...(search.unreadable > 0 ? [`${search.unreadable} that cannot be read`] : []),
  ]
  const notSearched = passed.length === 0 ? '' : ` Files not searched: ${passed.join(', ')}.`
  return `${amount(search.matches, 'line')} with ${quoted(text)}${files}${where}.${more}${notSearched}`
}
