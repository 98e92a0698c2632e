import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { visibleText } from './visible-text.ts'

/** The styles that a text may be put into. */
export type PaintStyle = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Puts a text into a style; leaves it as it is where there are no colours. */
export type Paint = (style: PaintStyle, text: string) => string

/** Marks the places of styles in a text. Text from outside cannot hold it, since it is new in each process. */
const secret = `\u0000${randomUUID()}:`
const marks = new RegExp(`${secret}(\\d+)\u0000`, 'g')

/** Returns styles for a stream: only if it is a terminal, and `NO_COLOR` is not set. */
export function paintFor(stream: { readonly isTTY?: boolean }, environment: NodeJS.ProcessEnv): Paint {
  if (stream.isTTY !== true || (environment['NO_COLOR'] ?? '') !== '') return (_style, text) => text
  return (style, text) => {
    const [on, off] = inspect.colors[style] as [number, number]
    return `${secret}${on}\u0000${text}${secret}${off}\u0000`
  }
}

/** Returns text as a terminal is to get it: styles only where a `Paint` has put them, everything else visible. */
export function terminalText(text: string): string {
  // Even indices hold the pieces between marks, odd ones the codes of styles.
  return text
    .split(marks)
    .map((piece, index) => (index % 2 === 1 ? `\u001B[${piece}m` : visibleText(piece)))
    .join('')
}
