import { ToolError } from '../../define/outcome.ts'
import type { ToolContext } from '../../define/run-tool.ts'
import { boundText, foldCase } from '../../define/text.ts'
import { type Glob, GlobError, parseGlob, splitPath, joinPath, quotePath } from './names.ts'
import { describeLeft, createNothingLeft, walk } from './read.ts'
import { type Place, withPlace } from './root.ts'
import { formatCount, type FolderRules, splitLines, findLines, locate, decodeFile } from './text.ts'

export interface FindFilesInput {
  readonly glob: string
  readonly path?: string
}

/** Finds files by a glob, a path a line. */
export async function findFiles(
  rules: FolderRules,
  input: FindFilesInput,
  { signal }: ToolContext,
): Promise<string> {
  return await withPlace(rules.root, splitPath(input.path ?? '.'), {}, async (place) => {
    const { name, path } = place
    if (name !== undefined)
      throw new ToolError(`${quotePath(joinPath(path))} is not a folder. Search in a folder.`)
    const search = (glob: Glob): ReturnType<typeof searchFolder> =>
      searchFolder(rules, place, glob, input, signal)
    // A model that copies the path of a route, such as `app/[slug]/page.tsx`, means that very path.
    const literal = input.glob.replaceAll(/[[\]]/g, '\\$&')
    const matches = parseAskedGlob(input.glob)
    const named = literal === input.glob ? undefined : await search(parseAskedGlob(literal))
    return named !== undefined && named.count > 0 ? named.text : (await search(matches)).text
  })
}

async function searchFolder(
  rules: FolderRules,
  { folder, path }: Place,
  matches: Glob,
  input: FindFilesInput,
  signal: AbortSignal,
): Promise<{ readonly count: number; readonly text: string }> {
  const left = createNothingLeft()
  const found: string[] = []
  let [bytes, isFull] = [0, false]
  for await (const entry of walk(rules, folder, signal, left)) {
    if (entry.kind === 'folder' || !matches(joinPath(entry.path.slice(path.length)))) continue
    const line = joinPath(entry.path) + (entry.kind === 'link' ? ' (link)' : '')
    bytes += Buffer.byteLength(line) + 1
    isFull = found.length >= rules.maxEntries || bytes > rules.maxBytes
    if (isFull) break
    found.push(line)
  }
  const where = path.length === 0 ? '' : ` in ${quotePath(joinPath(path))}`
  const many = isFull
    ? ` These are the first; there are more. Make the glob narrower, or name a folder as path.`
    : ''
  const head = `${formatCount(found.length, 'file')} for ${quotePath(input.glob)}${where}.${many}${describeLeft(left, rules.maxVisited)}`
  return { count: found.length, text: [head, ...found].join('\n') }
}

/** Reads the glob that a model gave; one without a slash is of a name in any folder. */
function parseAskedGlob(glob: string): Glob {
  const path = glob.replace(/^\.\//, '')
  if (path.startsWith('/')) {
    throw new ToolError(
      `The glob ${quotePath(glob)} is absolute. Write it from the folder that is searched, as in src/**/*.ts.`,
    )
  }
  try {
    return parseGlob(path.includes('/') ? path : `**/${path}`)
  } catch (error) {
    if (!(error instanceof GlobError)) throw error
    throw new ToolError(`The glob ${quotePath(glob)} ${error.message}.`, { cause: error })
  }
}

export interface SearchFilesInput {
  readonly text: string
  readonly path?: string
  readonly glob?: string
  readonly ignoreCase?: boolean
  readonly context?: number
}

const maxLineCharacters = 300

interface Search {
  readonly lines: string[]
  bytes: number
  matches: number
  files: number
  isFull: boolean
  binary: number
  too_large: number
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
  const matches = input.glob === undefined ? () => true : parseAskedGlob(input.glob)
  const search: Search = {
    lines: [],
    bytes: 0,
    matches: 0,
    files: 0,
    isFull: false,
    binary: 0,
    too_large: 0,
    unreadable: 0,
  }
  const left = createNothingLeft()
  return await withPlace(rules.root, splitPath(input.path ?? '.'), {}, async (place) => {
    const files =
      place.name === undefined
        ? walk(rules, place.folder, signal, left)
        : [{ ...place, name: place.name, kind: 'file' }]
    for await (const { folder, name, path, kind } of files) {
      if (kind !== 'file') continue
      if (!matches(joinPath(place.name === undefined ? path.slice(place.path.length) : path.slice(-1))))
        continue
      const access = await rules.root.access()
      const file = await access.openFile(folder, name).catch(() => undefined)
      if (file === undefined) search.unreadable++
      else {
        try {
          const read = await decodeFile(file, rules.maxFileBytes, signal)
          if (read.kind === 'text')
            collect(search, rules, path, findMatches(read.text, input, rules.maxEntries + 1))
          else search[read.kind]++
        } finally {
          await file.close()
        }
      }
      if (search.isFull) break
    }
    const { matches: count, binary, too_large, unreadable, isFull } = search
    const where = place.path.length === 0 ? '' : ` in ${quotePath(joinPath(place.path))}`
    const among = count === 0 ? '' : ` in ${formatCount(search.files, 'file')}`
    const more = isFull
      ? ' These are the first; there are more. Search for a longer text, or name a glob or a folder.'
      : ''
    const passed = [
      ...(binary > 0 ? [`${binary} binary`] : []),
      ...(too_large > 0 ? [`${too_large} larger than ${rules.maxFileBytes} bytes`] : []),
      ...(unreadable > 0 ? [`${unreadable} that cannot be read`] : []),
    ]
    const notSearched = passed.length === 0 ? '' : ` Files not searched: ${passed.join(', ')}.`
    const head = `${formatCount(count, 'line')} with ${quotePath(input.text)}${among}${where}.${more}${notSearched}`
    return [`${head}${describeLeft(left, rules.maxVisited)}`, ...search.lines].join('\n')
  })
}

interface ShownLine {
  readonly number: number
  readonly text: string
  readonly isMatch: boolean
  /** Lines between this one and the one before it are not shown. */
  readonly isApart: boolean
}

function findMatches(text: string, input: SearchFilesInput, count: number): readonly ShownLine[] {
  const { text: sought, ignoreCase = false, context = 0 } = input
  const [where, what] = ignoreCase ? [foldCase(text), foldCase(sought)] : [text, sought]
  const numbers = new Set(findLines(what, where, count))
  if (numbers.size === 0) return []
  const lines = splitLines(text)
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
  return shown.map((line) => {
    if (line.text.length <= maxLineCharacters) return line
    // The part of a long line in which the text is.
    const at = locate(what, ignoreCase ? foldCase(line.text) : line.text)
    const start = Math.max(0, at - maxLineCharacters / 3)
    const part = boundText(line.text.slice(start), maxLineCharacters)
    return { ...line, text: start === 0 ? part : `… ${part}`.toWellFormed() }
  })
}

function collect(
  search: Search,
  rules: FolderRules,
  path: readonly string[],
  lines: readonly ShownLine[],
): void {
  if (lines.length === 0) return
  if (!add(search, rules, joinPath(path))) return
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

/** Adds a line to the result; returns false where it does not fit. */
function add(search: Search, { maxBytes }: FolderRules, line: string): boolean {
  search.bytes += Buffer.byteLength(line) + 1
  if (search.bytes > maxBytes) search.isFull = true
  else search.lines.push(line)
  return !search.isFull
}
