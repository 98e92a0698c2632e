import { type Node, parseTree, type ParseError, printParseErrorCode } from 'jsonc-parser'
import { parse as parseToml, TomlError } from 'smol-toml'
import { configError } from './config-error.ts'

const maxCharacters = 5_000_000

/** Reads JSON, with comments and commas at the end of lists, as editors write it. Throws `ConfigurationError`. */
export function jsonConfig(text: string, file: string): unknown {
  requireSize(text, file)
  const errors: ParseError[] = []
  try {
    const tree = parseTree(withoutMark(text), errors, { allowTrailingComma: true })
    const [first] = errors
    if (first === undefined && tree !== undefined) return valueOf(tree)
    const place = first === undefined ? '' : ` at ${placeOf(text, first.offset)}`
    const what = first === undefined ? 'it is empty' : printParseErrorCode(first.error)
    throw configError({ file }, `It is no JSON${place} (${what}). Correct it there.`)
  } catch (error) {
    if (error instanceof RangeError) throw configError({ file }, 'It is nested too deeply.')
    throw error
  }
}

/** Reads TOML. Throws `ConfigurationError`. */
export function tomlConfig(text: string, file: string): unknown {
  requireSize(text, file)
  try {
    return parseToml(withoutMark(text))
  } catch (error) {
    // The library's message shows the lines around the fault, which may hold keys.
    const place = error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : ''
    throw configError({ file }, `It is no TOML${place}. Correct it there.`)
  }
}

function requireSize(text: string, file: string): void {
  if (text.length > maxCharacters) {
    throw configError(
      { file },
      `It has ${text.length} characters; a configuration has ${maxCharacters} at most.`,
    )
  }
}

/** Editors of Windows put a mark before the first character. */
function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

/** Own properties only, whatever they are called. */
function valueOf(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(valueOf)
  if (node.type !== 'object') return node.value
  return Object.fromEntries(
    (node.children ?? []).map(({ children: [key, value] = [] }) => [
      String(key?.value),
      value === undefined ? undefined : valueOf(value),
    ]),
  )
}

function placeOf(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
}
