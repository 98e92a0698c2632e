import type { Paint } from './paint.ts'

/** Where a run is shown: streamed text and whole lines are kept apart. */
export interface Screen {
  readonly paint: Paint
  /** Where inputs and results are cut, in characters. */
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
export function screenOn(
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
