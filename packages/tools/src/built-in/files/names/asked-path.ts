import { ToolError } from '../../../execution/tool-error.ts'

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
export function partsOf(path: string, platform: NodeJS.Platform = process.platform): readonly string[] {
  const refuse = (why: string): ToolError =>
    new ToolError(
      `The path ${quoted(path)} ${why}. Give it relative to the root folder, with / between names, as in src/index.ts.`,
    )
  if (control.test(path)) throw refuse('holds a control character')
  if (path.length > maxPathCharacters) throw refuse('is too long')
  if (/^(?:[/\\]|[A-Za-z]:)/.test(path)) throw refuse('is absolute')
  if (path.includes('\\')) throw refuse('holds a backslash')
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (platform === 'win32') {
    const strange = parts.find(isReadDifferentlyOnWindows)
    if (strange !== undefined)
      throw refuse(`holds the name ${quoted(strange)}, which Windows reads differently`)
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

/** Whether results show a name: one that a line can hold, and that `partsOf` takes. */
export function isUsableName(name: string): boolean {
  return !control.test(name) && !name.includes('\\') && !name.includes('\ufffd') && name.search(unseen) === -1
}

/** Marks that turn the direction of writing, and the tags of Unicode: a reader does not see them. */
const unseen = /[\u0080-\u009f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu

/** Names as a path relative to the root; the root is `.`. */
export function pathText(parts: readonly string[]): string {
  return parts.length === 0 ? '.' : parts.join('/')
}

/** A path in an error: in quotes, with escapes for what is not seen, bounded. */
export function quoted(path: string): string {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  return JSON.stringify(shown.toWellFormed().replaceAll(unseen, '\ufffd'))
}
