import { ConfigurationError } from '@tallystick/core'
import { ToolError } from '../../define/outcome.ts'
import { foldCase } from '../../define/text.ts'

/** The longest path that is looked at, in characters. */
export const maxPathCharacters = 4_000

/** Names that Windows takes for devices, whatever follows their first dot. */
const windowsDevices = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)$/i

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const control = /[\u0000-\u001f\u007f]/

/**
 * The names that a path consists of, from the root down; `..` remains, since links decide where it leads. Throws
 * `ToolError` for a path that is not relative to the root, or that systems read differently.
 */
export function splitPath(path: string, platform: NodeJS.Platform = process.platform): readonly string[] {
  const refuse = (why: string): ToolError =>
    new ToolError(
      `The path ${quotePath(path)} ${why}. Give it relative to the root folder, with / between names, as in src/index.ts.`,
    )
  if (control.test(path)) throw refuse('holds a control character')
  if (path.length > maxPathCharacters) throw refuse('is too long')
  if (/^(?:[/\\]|[A-Za-z]:)/.test(path)) throw refuse('is absolute')
  if (path.includes('\\')) throw refuse('holds a backslash')
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (platform === 'win32') {
    const strange = parts.find(isReadDifferentlyOnWindows)
    if (strange !== undefined)
      throw refuse(`holds the name ${quotePath(strange)}, which Windows reads differently`)
  }
  return parts
}

/** Windows drops dots and spaces at the end of a name, and reads a colon as the start of a stream's name. */
function isReadDifferentlyOnWindows(part: string): boolean {
  if (part === '..') return false
  const [stem = ''] = part.split('.')
  return (
    /[. ]$/.test(part) || /[:*?"<>|]/.test(part) || windowsDevices.test(stem.trimEnd()) || /~[0-9]/.test(part)
  )
}

/** True for names that results may show: those that fit on a line and that `splitPath` takes. */
export function isUsableName(name: string): boolean {
  return !control.test(name) && !name.includes('\\') && !name.includes('\ufffd') && name.search(unseen) === -1
}

/** Marks that turn the direction of writing, and the tags of Unicode: a reader does not see them. */
const unseen = /[\u0080-\u009f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu

/** Names as a path relative to the root; the root is `.`. */
export function joinPath(parts: readonly string[]): string {
  return parts.length === 0 ? '.' : parts.join('/')
}

/** A path in an error: in quotes, with escapes for what is not seen, bounded. */
export function quotePath(path: string): string {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  return JSON.stringify(shown.toWellFormed().replaceAll(unseen, '\ufffd'))
}

/** Matches a path such as `src/index.ts`. Takes time in proportion to the path times the glob. */
export type Glob = (path: string) => boolean

/** A faulty glob; the message continues "The glob …". */
export class GlobError extends Error {
  override readonly name: string = 'GlobError'
}

/** One state of the automaton: `next` are the states that follow, at once where it takes no character. */
interface State {
  readonly takes?: (character: string) => boolean
  readonly next: number[]
}

/** The longest glob, in characters. */
export const maxGlobCharacters = 200

/**
 * Reads a glob: `*` and `?` match within a name, `**` any folders, `[a-z]` and `[!a-z]` one character, `{a,b}` either. A
 * backslash takes the character after it as it is. Throws `GlobError` for one that cannot be read.
 *
 * All of its states are followed side by side, so that no glob takes more than its length for each character.
 */
export function parseGlob(
  pattern: string,
  { ignoreCase = false }: { readonly ignoreCase?: boolean } = {},
): Glob {
  const fold = (text: string): string => (ignoreCase ? foldCase(text.normalize()) : text.normalize())
  const characters = Array.from(fold(pattern))
  if (characters.length > maxGlobCharacters) {
    throw new GlobError(`is longer than ${maxGlobCharacters} characters`)
  }
  const states = new GlobReader(characters).read()
  return (path) => isMatching(states, Array.from(fold(path)))
}

function isMatching(states: readonly State[], characters: readonly string[]): boolean {
  let active = closeStates(states, [0])
  for (const character of characters) {
    const next = [...active].flatMap((index) => {
      const state = states[index]
      return state?.takes?.(character) ? state.next : []
    })
    if (next.length === 0) return false
    active = closeStates(states, next)
  }
  // The last state is the end.
  return active.has(states.length - 1)
}

/** The states that can be reached from these without a character. */
function closeStates(states: readonly State[], from: readonly number[]): ReadonlySet<number> {
  const found = new Set(from)
  for (const index of found) {
    const state = states[index]
    if (state !== undefined && !state.takes) for (const next of state.next) found.add(next)
  }
  return found
}

const anyCharacter = (): boolean => true
const withinName = (character: string): boolean => character !== '/'

/** Makes the states of a glob, from its first character to its last. */
class GlobReader {
  readonly #states: State[] = []
  readonly #characters: readonly string[]
  #place = 0

  constructor(characters: readonly string[]) {
    this.#characters = characters
  }

  read(): readonly State[] {
    this.#sequence(0)
    this.#add()
    return this.#states
  }

  /** Adds a state that leads to the one that is added after it. */
  #add(takes?: State['takes']): number {
    const index = this.#states.length
    this.#states.push({ next: [index + 1], ...(takes && { takes }) })
    return index
  }

  /** Adds a loop over characters: any number of them, none included. */
  #loop(takes: NonNullable<State['takes']>): void {
    const start = this.#add()
    const taking = this.#add(takes)
    this.#states[taking]?.next.splice(0, 1, start)
    this.#states[start]?.next.push(this.#states.length)
  }

  /** Reads up to the end, or to a `,` or `}` that ends an alternative of the braces around it. */
  #sequence(depth: number): void {
    for (;;) {
      const character = this.#characters[this.#place]
      if (character === undefined) return
      if (depth > 0 && (character === ',' || character === '}')) return
      this.#place++
      if (character === '*') this.#stars()
      else if (character === '?') this.#add(withinName)
      else if (character === '[') this.#add(this.#set())
      else if (character === '{') this.#alternatives(depth + 1)
      else this.#literal(character)
    }
  }

  #literal(first: string): void {
    const character = first === '\\' ? this.#characters[this.#place++] : first
    if (character === undefined) throw new GlobError('ends with a backslash')
    this.#add((given) => given === character)
  }

  /** `*`, or `**` where it is a whole name: `**` and the slash after it match any folders, or no folder. */
  #stars(): void {
    const before = this.#characters[this.#place - 2]
    let count = 1
    while (this.#characters[this.#place] === '*') [this.#place, count] = [this.#place + 1, count + 1]
    const after = this.#characters[this.#place]
    const isWhole = (before === undefined || before === '/') && (after === undefined || after === '/')
    if (count === 1 || !isWhole) return this.#loop(withinName)
    if (after === undefined) return this.#loop(anyCharacter)
    this.#place++
    // Either nothing, or anything that ends with a slash.
    const start = this.#add()
    this.#loop(anyCharacter)
    this.#add((character) => character === '/')
    this.#states[start]?.next.push(this.#states.length)
  }

  #set(): NonNullable<State['takes']> {
    const isNegated = this.#characters[this.#place] === '!' || this.#characters[this.#place] === '^'
    if (isNegated) this.#place++
    const ranges: (readonly [string, string])[] = []
    while (this.#characters[this.#place] !== ']' || ranges.length === 0) {
      const from = this.#setCharacter()
      const isRange = this.#characters[this.#place] === '-' && this.#characters[this.#place + 1] !== ']'
      if (isRange) this.#place++
      ranges.push([from, isRange ? this.#setCharacter() : from])
    }
    this.#place++
    return (character) =>
      character !== '/' && isNegated !== ranges.some(([from, to]) => from <= character && character <= to)
  }

  #setCharacter(): string {
    const character = this.#characters[this.#place++]
    const taken = character === '\\' ? this.#characters[this.#place++] : character
    if (taken === undefined) throw new GlobError('has a [ without its ]')
    return taken
  }

  #alternatives(depth: number): void {
    const fork = this.#add()
    this.#states[fork]?.next.splice(0)
    const ends: number[] = []
    for (;;) {
      this.#states[fork]?.next.push(this.#states.length)
      this.#sequence(depth)
      ends.push(this.#add())
      const mark = this.#characters[this.#place++]
      if (mark === undefined) throw new GlobError('has a { without its }')
      if (mark === '}') break
    }
    for (const end of ends) this.#states[end]?.next.splice(0, 1, this.#states.length)
  }
}

/** Why a path is not shown. */
export type Unshown = 'hidden' | 'ignored'

/** Which paths of the folder tools show and use. */
export interface ShownNames {
  /** Why the last name of a path is not shown; its folders have been judged before. */
  unshown(parts: readonly string[], isFolder: boolean): Unshown | undefined
}

/** Beginning and end of the names of the files that hold a text before it replaces another one. */
export const temporaryName = { start: '.tallystick-', end: '.tmp' } as const

/**
 * `ignore` holds globs as in a `.gitignore`: one without a slash is of a name at any depth, one with a slash of a path
 * from the root, and one that ends with a slash of folders only. Case does not matter, since it does not on every file
 * system. Throws `ConfigurationError` for a glob that cannot be read.
 */
export function createNameRules(tool: string, ignore: readonly string[], hidden: boolean): ShownNames {
  const rules = ignore.map((pattern) => parseRule(tool, pattern))
  return {
    unshown(parts, isFolder) {
      const name = parts.at(-1) ?? ''
      if (isTemporary(name) || (!hidden && name.startsWith('.'))) return 'hidden'
      const path = parts.join('/')
      const isIgnored = rules.some(
        ({ foldersOnly, ofName, glob }) => (isFolder || !foldersOnly) && glob(ofName ? name : path),
      )
      return isIgnored ? 'ignored' : undefined
    },
  }
}

function isTemporary(name: string): boolean {
  const folded = name.toLowerCase()
  return folded.startsWith(temporaryName.start) && folded.endsWith(temporaryName.end)
}

interface Rule {
  readonly foldersOnly: boolean
  readonly ofName: boolean
  readonly glob: Glob
}

function parseRule(tool: string, pattern: string): Rule {
  const fault = (why: string): ConfigurationError =>
    new ConfigurationError(`${tool}: the glob ${JSON.stringify(pattern)} in ignore ${why}.`)
  if (pattern.startsWith('!')) throw fault('begins with !. Leave out the glob that ignores too much instead')
  const body = pattern.replace(/\/$/, '')
  const path = body.replace(/^\//, '')
  if (path === '') throw fault('names nothing')
  try {
    const glob = parseGlob(path, { ignoreCase: true })
    return { foldersOnly: body !== pattern, ofName: !body.includes('/'), glob }
  } catch (error) {
    if (error instanceof GlobError) throw fault(error.message)
    throw error
  }
}
