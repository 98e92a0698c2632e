import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { ToolError } from '../../define/outcome.ts'
import type { ToolContext } from '../../define/run-tool.ts'
import { splitPath, joinPath, quotePath } from './names.ts'
import { type Place, type Root, withPlace } from './root.ts'

/** The root of a family of tools, and the bounds of one call. */
export interface FolderRules {
  readonly root: Root
  /** Bytes of text shown in one result. */
  readonly maxBytes: number
  /** Bytes of a file that is read, searched or written. */
  readonly maxFileBytes: number
  /** Files, folders or matching lines shown in one result. */
  readonly maxEntries: number
  /** Files and folders that one call looks at. */
  readonly maxVisited: number
}

/** A text file, as a call has read it. */
export interface ReadText extends Extract<FileText, { kind: 'text' }> {
  /** The names from the root down, links resolved. */
  readonly path: readonly string[]
}

/** Reads the text file at a path. Throws `ToolError` for what is not a text file, or is too large. */
export async function readText(
  rules: FolderRules,
  path: string,
  { signal }: Pick<ToolContext, 'signal'>,
): Promise<ReadText> {
  return await withPlace(
    rules.root,
    splitPath(path),
    {},
    async (place) => await readTextAt(rules, place, signal),
  )
}

/** The text of the file at a place. Throws `ToolError` for what is not a text file, or is too large. */
export async function readTextAt(rules: FolderRules, place: Place, signal: AbortSignal): Promise<ReadText> {
  const path = quotePath(joinPath(place.path))
  const { folder, name } = requireFile(place)
  const access = await rules.root.access()
  const file = await access.openFile(folder, name)
  try {
    const read = await decodeFile(file, rules.maxFileBytes, signal)
    if (read.kind === 'text') return { ...read, path: place.path }
    if (read.kind === 'binary') {
      throw new ToolError(
        `${path} is not text in UTF-8 but binary (${formatCount(read.size, 'byte')}): this tool reads text only.`,
      )
    }
    throw new ToolError(
      `${path} is too large: it has ${formatCount(read.size, 'byte')}, and at most ${rules.maxFileBytes} are read.`,
    )
  } finally {
    await file.close()
  }
}

/** The place of a regular file. Throws `ToolError` if something else, or nothing, is there. */
export function requireFile({ folder, name, path, stats }: Place): {
  readonly folder: Place['folder']
  readonly name: string
} {
  if (name !== undefined && stats?.isFile()) return { folder, name }
  const what =
    name === undefined
      ? 'a folder, and a file is needed'
      : 'not a regular file but a device, a pipe or a socket'
  throw new ToolError(`${quotePath(joinPath(path))} is ${what}.`)
}

/** A file as text, or why it has no text to show: `size` is in bytes, if known. */
export type FileText =
  | { readonly kind: 'text'; readonly text: string; readonly size: number; readonly stats: Stats }
  | { readonly kind: 'binary' | 'too_large'; readonly size: number }

const pieceBytes = 256 * 1024

/**
 * The whole text of an open file of at most `maxBytes`. A file with NUL characters, or whose bytes are not UTF-8, is
 * binary. A mark of the byte order at the start stays part of the text.
 */
export async function decodeFile(file: FileHandle, maxBytes: number, signal: AbortSignal): Promise<FileText> {
  const stats = await file.stat()
  if (stats.size > maxBytes) return { kind: 'too_large', size: stats.size }
  const pieces: Buffer[] = []
  let size = 0
  // Its size is not a promise: a file may grow, and some files of the system say that they are empty.
  for (;;) {
    signal.throwIfAborted()
    const piece = Buffer.allocUnsafe(pieceBytes)
    const { bytesRead } = await file.read(piece, 0, piece.length, size)
    if (bytesRead === 0) break
    const read = piece.subarray(0, bytesRead)
    // Binary files show it early, and need not be read to their end.
    if (read.includes(0)) return { kind: 'binary', size: Math.max(stats.size, size + bytesRead) }
    pieces.push(read)
    size += bytesRead
    if (size === stats.size) break
    if (size > maxBytes) return { kind: 'too_large', size }
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(pieces))
    return { kind: 'text', text, size, stats }
  } catch {
    return { kind: 'binary', size }
  }
}

/** The lines of a text, without their ends; the end of the last line begins no further one. */
export function splitLines(text: string): readonly string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
}

/** True if a text has line breaks and each is CR LF. */
export function hasWindowsLines(text: string): boolean {
  return text.includes('\n') && !/(?<!\r)\n/.test(text)
}

/**
 * Seeks the places where a text that is not empty begins in another one, those that overlap included. It looks at each
 * character a bounded number of times, however the two texts repeat themselves (the algorithm of Knuth, Morris and Pratt).
 */
class PlaceSeeker {
  readonly #sought: string
  readonly #text: string
  /** For each beginning of the sought text the length of its longest proper beginning that is also its end. */
  readonly #borders: Uint32Array
  #place = 0
  #matched = 0

  constructor(sought: string, text: string) {
    this.#sought = sought
    this.#text = text
    this.#borders = new Uint32Array(sought.length)
    for (let place = 1, matched = 0; place < sought.length; place++) {
      while (matched > 0 && sought[place] !== sought[matched]) matched = this.#borders[matched - 1] ?? 0
      if (sought[place] === sought[matched]) matched++
      this.#borders[place] = matched
    }
  }

  /** The next place of a text that ends before `to`; -1 where there is none. */
  next(to: number = this.#text.length): number {
    const [text, sought, borders] = [this.#text, this.#sought, this.#borders]
    let [place, matched] = [this.#place, this.#matched]
    let found = -1
    while (place < to && found === -1) {
      const unit = text.charCodeAt(place++)
      while (matched > 0 && unit !== sought.charCodeAt(matched)) matched = borders[matched - 1] ?? 0
      if (unit === sought.charCodeAt(matched)) matched++
      if (matched < sought.length) continue
      found = place - matched
      matched = borders[matched - 1] ?? 0
    }
    ;[this.#place, this.#matched] = [place, matched]
    return found
  }
}

/** Characters that are looked at before the event loop has its turn. */
const sliceLength = 512 * 1024

/** Finds the places where a text that is not empty begins in another one, without holding the event loop. */
export async function findPlaces(
  sought: string,
  text: string,
  signal: AbortSignal,
): Promise<{
  /** Those that do not overlap, from the first one on. */
  readonly places: readonly number[]
  /** How many others begin within them: `aa` begins twice in `aaa`. */
  readonly overlapping: number
}> {
  const seeker = new PlaceSeeker(sought, text)
  const places: number[] = []
  let [overlapping, end] = [0, 0]
  for (let to = 0; to < text.length;) {
    to = Math.min(text.length, to + sliceLength)
    for (let start = seeker.next(to); start !== -1; start = seeker.next(to)) {
      if (start < end) overlapping++
      else {
        places.push(start)
        end = start + sought.length
      }
    }
    await setImmediate()
    signal.throwIfAborted()
  }
  return { places, overlapping }
}

/** The places where a text begins in another one, without overlaps. */
export function findAllPlaces(sought: string, text: string): readonly number[] {
  if (sought === '') return []
  const seeker = new PlaceSeeker(sought, text)
  const places: number[] = []
  for (let place = seeker.next(); place !== -1; place = seeker.next())
    if (place >= (places.at(-1) ?? -Infinity) + sought.length) places.push(place)
  return places
}

/** The place where a text that is not empty first begins in another one; -1 where it does not. */
export function locate(sought: string, text: string): number {
  return new PlaceSeeker(sought, text).next()
}

/** The numbers, from 1, of the first lines that hold a text; the text is not empty and holds no line break. */
export function findLines(sought: string, text: string, count: number): readonly number[] {
  const seeker = new PlaceSeeker(sought, text)
  const numbers: number[] = []
  let [line, end] = [0, -1]
  while (numbers.length < count) {
    const place = seeker.next()
    if (place === -1) break
    if (place < end) continue
    for (; end < place; line++) {
      const next = text.indexOf('\n', end + 1)
      end = next === -1 ? text.length : next
    }
    numbers.push(line)
  }
  return numbers
}

/** The numbers, from 1, of the lines in which these places of a text are; the places rise. */
export function numberLines(text: string, places: readonly number[]): readonly number[] {
  let [line, next] = [1, text.indexOf('\n')]
  return places.map((place) => {
    while (next !== -1 && next < place) [line, next] = [line + 1, text.indexOf('\n', next + 1)]
    return line
  })
}

/** A number of things in words: `1 line`, `2 lines`. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}
