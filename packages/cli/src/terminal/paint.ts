import { inspect } from 'node:util'
import { makeVisible } from './text-width.ts'

/** The styles that a text may be put into. */
export type PaintStyle = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Puts a text into a style; without colours, returns it unchanged. */
export type Paint = (style: PaintStyle, text: string) => string

/** The beginning of the marks at the places of styles. Text from outside cannot hold it, since it is new in each process. */
const beginning = `\u0000${crypto.randomUUID()}:`
const marks = new RegExp(`${beginning}(\\d+)\u0000`, 'g')

/** Returns styles for a stream: only if it is a terminal, and `NO_COLOR` is not set. */
export function createPaint(stream: { readonly isTTY?: boolean }, environment: NodeJS.ProcessEnv): Paint {
  if (stream.isTTY !== true || (environment['NO_COLOR'] ?? '') !== '') return (_style, text) => text
  return (style, text) => {
    const [on, off] = inspect.colors[style] as [number, number]
    return `${beginning}${on}\u0000${text}${beginning}${off}\u0000`
  }
}

/** Returns text as a terminal is to get it: styles only where a `Paint` has put them, everything else visible. */
export function toTerminalText(text: string): string {
  // Even indices hold the pieces between marks, odd ones the codes of styles.
  return text
    .split(marks)
    .map((piece, index) => (index % 2 === 1 ? `\u001B[${piece}m` : makeVisible(piece)))
    .join('')
}

/** A view of a run that keeps streamed text and whole lines apart. */
export interface Screen {
  readonly paint: Paint
  /** The most characters of an input or a result. */
  readonly cutAt: number
  /** Writes one line; line breaks in it become spaces, so that no text can look like the next line. */
  readonly line: (text: string) => void
  /** Writes text of one or more lines. */
  readonly block: (text: string) => void
  /** A line about the run, and not of it. */
  readonly note: (text: string) => void
  readonly stream: (text: string) => void
  readonly endStream: () => void
}

/** A screen over what takes text as it comes. */
export function createScreen(
  write: (text: string) => void,
  { paint, cutAt }: Pick<Screen, 'paint' | 'cutAt'>,
): Screen {
  let lineOpen = false
  let streaming = false
  const endStream = (): void => {
    if (lineOpen) write('\n')
    lineOpen = false
    streaming = false
  }
  const block = (text: string): void => {
    endStream()
    write(`${text}\n`)
  }
  const line = (text: string): void => block(text.replaceAll(/[\r\n]+/g, ' '))
  const stream = (text: string): void => {
    if (text === '') return
    write(streaming ? text : `\n${text}`)
    lineOpen = !text.endsWith('\n')
    streaming = true
  }
  const note = (text: string): void => line(paint('yellow', `! ${text}`))
  return { paint, cutAt, line, block, stream, endStream, note }
}
