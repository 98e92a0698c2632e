import { readCode } from '@tallystick/core/internal'
import { lstat, opendir } from 'node:fs/promises'
import { ToolError } from '../../define/outcome.ts'
import type { ToolContext } from '../../define/run-tool.ts'
import { readWithin } from '../../define/text.ts'
import { isUsableName, splitPath, joinPath, quotePath } from './names.ts'
import { type Folder, withPlace } from './root.ts'
import { formatCount, type FolderRules, hasWindowsLines, splitLines, readText } from './text.ts'

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
  const lines = splitLines(text)
  const { offset = 1, limit = Infinity, column = 1 } = input
  const shownPath = quotePath(joinPath(path))
  if (lines.length === 0) return `${shownPath} is empty.`
  const first = lines[offset - 1]
  if (first === undefined) {
    throw new ToolError(`${shownPath} has ${formatCount(lines.length, 'line')}: it has no line ${offset}.`)
  }
  if (column > 1 && column > first.length) {
    throw new ToolError(
      `Line ${offset} of ${shownPath} has ${formatCount(first.length, 'character')}: it has no column ${column}.`,
    )
  }
  const page = cut(lines.slice(offset - 1, offset - 1 + limit), { offset, column }, rules.maxBytes)
  const last = offset + page.shown.length - 1
  const isLast = last === lines.length && page.rest === ''
  const whole = isLast && offset === 1 && column === 1
  const which = whole ? formatCount(lines.length, 'line') : `lines ${offset} to ${last} of ${lines.length}`
  const from = column > 1 ? `, line ${offset} from column ${column}` : ''
  const more = page.rest === '' && !isLast ? ` Continue with offset ${last + 1}.` : page.rest
  // Line ends that the numbered lines do not show.
  const ends = hasWindowsLines(text) ? ', lines end with CR LF' : ''
  const end = isLast && !text.endsWith('\n') ? ', without a line break at its end' : ''
  const head = `${shownPath}: ${which}${from} (${formatCount(size, 'byte')}${ends}${end}).${more}`
  return [head, ...page.shown].join('\n')
}

/** As many numbered lines as fit, and how to get what follows. */
function cut(
  lines: readonly string[],
  { offset, column }: { readonly offset: number; readonly column: number },
  maxBytes: number,
): { readonly shown: readonly string[]; readonly rest: string } {
  const shown: string[] = []
  let left = maxBytes
  for (const [index, line] of lines.entries()) {
    const start = index === 0 ? column - 1 : 0
    const text = line.slice(start)
    const numbered = `${offset + index}\t${text}`
    left -= Buffer.byteLength(numbered) + 1
    if (left >= 0) shown.push(numbered)
    else if (index > 0)
      return { shown, rest: ` Cut at ${maxBytes} bytes: continue with offset ${offset + index}.` }
    else {
      // One character at least.
      const part = readWithin(text, maxBytes) || String.fromCodePoint(Number(text.codePointAt(0)))
      const next = `continue with offset ${offset} and column ${start + part.length + 1}`
      const rest = ` Line ${offset} has ${formatCount(line.length, 'character')} and is cut at ${maxBytes} bytes: ${next}.`
      return { shown: [`${offset}\t${part}`], rest }
    }
  }
  return { shown, rest: '' }
}

/** An entry that a walk has come to. Its folder is open until the walk continues. */
interface Visited {
  readonly folder: Folder
  readonly name: string
  readonly path: readonly string[]
  readonly kind: 'file' | 'folder' | 'link' | 'other'
}

/** Counts of what a walk has left out. */
export interface Left {
  /** Folders that could not be read. */
  unreadable: number
  /** Entries whose names no result can show. */
  unusable: number
  /** Entries that were looked at. */
  visited: number
  /** The walk ended at the largest number of entries, or of nested folders. */
  isCut: boolean
}

export function createNothingLeft(): Left {
  return { unreadable: 0, unusable: 0, visited: 0, isCut: false }
}

/** Folders within folders that a walk goes down to, at most: each is held open. */
const maxDepth = 100

/**
 * All that a folder holds and tools show, in order of names, each folder before what it holds. Links are not followed.
 */
export async function* walk(
  rules: FolderRules,
  folder: Folder,
  signal: AbortSignal,
  left: Left,
): AsyncGenerator<Visited, void, undefined> {
  for (const visited of await listEntries(rules, folder, signal, left)) {
    yield visited
    if (visited.kind !== 'folder') continue
    if (left.isCut || visited.path.length >= maxDepth) {
      left.isCut = true
      continue
    }
    const access = await rules.root.access()
    const inner = await access.enter(visited.folder, visited.name).catch(() => undefined)
    if (inner === undefined) {
      left.unreadable++
      continue
    }
    try {
      yield* walk(rules, inner, signal, left)
    } finally {
      await inner.close()
    }
  }
}

/** The entries of one folder that tools show, in order of names. */
async function listEntries(
  { root, maxVisited }: FolderRules,
  folder: Folder,
  signal: AbortSignal,
  left: Left,
): Promise<readonly Visited[]> {
  const found: Visited[] = []
  try {
    for await (const entry of await opendir(folder.at('.'), { bufferSize: 256 })) {
      signal.throwIfAborted()
      if (++left.visited > maxVisited) {
        left.isCut = true
        break
      }
      const path = [...folder.path, entry.name]
      if (root.shown.unshown(path, entry.isDirectory()) !== undefined) continue
      if (!isUsableName(entry.name)) left.unusable++
      else {
        const other = entry.isSymbolicLink() ? 'link' : 'other'
        const kind = entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : other
        found.push({ folder, name: entry.name, path, kind })
      }
    }
  } catch (error) {
    if (readCode(error) === undefined) throw error
    left.unreadable++
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Sentences for the head of a result. */
export function describeLeft(left: Left, maxVisited: number): string {
  const sentences = [
    left.isCut
      ? ` Not everything was looked at: the folder holds more than ${maxVisited} entries, or goes too deep. Name a folder within it.`
      : '',
    left.unreadable > 0 ? ` Folders that could not be read: ${left.unreadable}.` : '',
    left.unusable > 0 ? ` Entries with names that cannot be shown: ${left.unusable}.` : '',
  ]
  return sentences.join('')
}

export interface ListFilesInput {
  readonly path?: string
  /** The name after which the list begins. */
  readonly after?: string
}

/** Lists a folder, a name a line: folders end with a slash, files have their size. */
export async function listFiles(
  rules: FolderRules,
  input: ListFilesInput,
  { signal }: ToolContext,
): Promise<string> {
  const { path: asked = '.', after } = input
  return await withPlace(rules.root, splitPath(asked), {}, async (place) => {
    const path = quotePath(joinPath(place.path))
    if (place.name !== undefined) throw new ToolError(`${path} is not a folder. Read it as a file instead.`)
    const left = createNothingLeft()
    const entries = await listEntries(rules, place.folder, signal, left)
    if (left.unreadable > 0) throw new ToolError(`${path} cannot be read: the permission is missing.`)
    const rest = after === undefined ? entries : entries.filter(({ name }) => name > after)
    const shown: string[] = []
    let bytes = 0
    for (const entry of rest.slice(0, rules.maxEntries)) {
      const line = await describeEntry(entry)
      bytes += Buffer.byteLength(line) + 1
      if (bytes > rules.maxBytes && shown.length > 0) break
      shown.push(line)
    }
    const more =
      shown.length < rest.length
        ? ` Shown are ${shown.length}: continue with after ${JSON.stringify(rest[shown.length - 1]?.name)}.`
        : ''
    const from = after === undefined ? '' : ` after ${quotePath(after)}`
    return [
      `${path}: ${formatCount(rest.length, 'entry', 'entries')}${from}.${more}${describeLeft(left, rules.maxVisited)}`,
      ...shown,
    ].join('\n')
  })
}

async function describeEntry({ folder, name, kind }: Visited): Promise<string> {
  if (kind === 'folder') return `${name}/`
  if (kind === 'link') return `${name} (link)`
  if (kind === 'other') return `${name} (not a regular file)`
  try {
    return `${name} (${formatCount((await lstat(folder.at(name))).size, 'byte')})`
  } catch {
    return `${name} (gone)`
  }
}
