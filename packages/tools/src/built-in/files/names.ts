import { ConfigurationError } from '@tallystick/core'
import { RE2JS } from 're2js'
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

/** The longest glob, in characters. */
export const maxGlobCharacters = 200

/**
 * Reads a glob: `*` and `?` match within a name, `**` any folders, `[a-z]` and `[!a-z]` one character, `{a,b}` either. A
 * backslash takes the character after it as it is. Throws `GlobError` for one that cannot be read.
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
  const expression = RE2JS.compile(translateGlob(characters), RE2JS.DOTALL)
  return (path) => expression.testExact(fold(path))
}

/** The regular expression of a glob, for an engine that takes time in proportion to the text. */
function translateGlob(characters: readonly string[]): string {
  let place = 0
  let braces = 0
  const take = (fault: string): string => {
    const character = characters[place++]
    if (character === undefined) throw new GlobError(fault)
    return character
  }

  /** `*`, or `**` where it is a whole name: `**` and the slash after it match any folders, or no folder. */
  const translateStars = (): string => {
    const before = characters[place - 2]
    const first = place
    while (characters[place] === '*') place++
    const after = characters[place]
    const isWhole = (before === undefined || before === '/') && (after === undefined || after === '/')
    if (place === first || !isWhole) return '[^/]*'
    if (after === undefined) return '.*'
    place++
    return '(?:.*/)?'
  }
  const takeSetCharacter = (): number => {
    const fault = 'has a [ without its ]'
    const character = take(fault)
    return (character === '\\' ? take(fault) : character).codePointAt(0) as number
  }
  const translateSet = (): string => {
    const isNegated = characters[place] === '!' || characters[place] === '^'
    if (isNegated) place++
    const ranges: (readonly [number, number])[] = []
    while (characters[place] !== ']' || ranges.length === 0) {
      const from = takeSetCharacter()
      const isRange = characters[place] === '-' && characters[place + 1] !== ']'
      if (isRange) place++
      ranges.push([from, isRange ? takeSetCharacter() : from])
    }
    place++
    // A slash is never within a name.
    const slash = 0x2f
    const taken = ranges
      .flatMap(([from, to]) => [
        [from, Math.min(to, slash - 1)] as const,
        [Math.max(from, slash + 1), to] as const,
      ])
      .filter(([from, to]) => from <= to)
      .map(([from, to]) => `\\x{${from.toString(16)}}-\\x{${to.toString(16)}}`)
      .join('')
    if (isNegated) return `[^/${taken}]`
    return taken === '' ? '[^\\x{0}-\\x{10ffff}]' : `[${taken}]`
  }

  let source = ''
  while (place < characters.length) {
    const character = take('')
    if (character === '*') source += translateStars()
    else if (character === '?') source += '[^/]'
    else if (character === '[') source += translateSet()
    else if (character === '{') {
      braces++
      source += '(?:'
    } else if (character === ',' && braces > 0) source += '|'
    else if (character === '}' && braces > 0) {
      braces--
      source += ')'
    } else source += RE2JS.quote(character === '\\' ? take('ends with a backslash') : character)
  }
  if (braces > 0) throw new GlobError('has a { without its }')
  return source
}

/** Which paths of the folder tools show and use. */
export interface ShownNames {
  /** Why the last name of a path is not shown; its folders have been judged before. */
  unshown(parts: readonly string[], isFolder: boolean): 'hidden' | 'ignored' | undefined
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
      const folded = name.toLowerCase()
      const isTemporary = folded.startsWith(temporaryName.start) && folded.endsWith(temporaryName.end)
      if (isTemporary || (!hidden && name.startsWith('.'))) return 'hidden'
      const path = parts.join('/')
      const isIgnored = rules.some(
        ({ foldersOnly, ofName, glob }) => (isFolder || !foldersOnly) && glob(ofName ? name : path),
      )
      return isIgnored ? 'ignored' : undefined
    },
  }
}

function parseRule(
  tool: string,
  pattern: string,
): { readonly foldersOnly: boolean; readonly ofName: boolean; readonly glob: Glob } {
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
