import { ConfigurationError } from '@tallystick/core'

/**
 * Characters that source code may hold unescaped: letters, marks, numbers, punctuation and symbols of any script, and
 * the space. Line ends, controls, direction marks and invisible characters are written as escapes, so that no text can
 * break out of its literal, and code reads as it runs.
 */
const asItIs = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u

/** A text as a string literal of JavaScript, in single quotes. */
export function stringLiteral(text: string): string {
  return `'${escaped(text).replaceAll("'", String.raw`\'`)}'`
}

/** A text for a line comment. */
export function commentText(text: string): string {
  return escaped(text.replaceAll(/\s+/g, ' '))
}

/** A name that code imports. Throws a `ConfigurationError` where it is no identifier of JavaScript. */
export function identifier(name: string): string {
  if (/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)) return name
  throw new ConfigurationError(
    `${stringLiteral(name)} cannot be imported by name, since it is no identifier. Give the name of a named export, or ` +
      'none for the default export.',
  )
}

function escaped(text: string): string {
  return Array.from(text, (character) => {
    if (character === '\\') return String.raw`\\`
    return asItIs.test(character) ? character : escapeOf(character)
  }).join('')
}

function escapeOf(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
  return units.map((unit) => String.raw`\u` + unit.toString(16).padStart(4, '0')).join('')
}
