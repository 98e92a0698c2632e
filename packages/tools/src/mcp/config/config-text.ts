import { parse as parseToml, TomlError } from 'smol-toml'
import { jsonWithComments, withoutMark } from '../../content/json-with-comments.ts'
import { configError } from './config-error.ts'

const maxCharacters = 5_000_000

/** Reads JSON, with comments and commas at the end of lists, as editors write it. Throws `ConfigurationError`. */
export function jsonConfig(text: string, file: string): unknown {
  requireSize(text, file)
  const read = jsonWithComments(text)
  if ('fault' in read) throw configError({ file }, `${read.fault} Correct it there.`)
  return read.value
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
