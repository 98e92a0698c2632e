import type { Paint } from './paint.ts'

/** Where a run is shown: streamed text and whole lines are kept apart. */
export interface Screen {
  readonly paint: Paint
  /** Where inputs and results are cut, in characters. */
  readonly cutAt: number
  readonly line: (text: string) => void
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
  const line = (text: string): void => {
    endStream()
    write(`${text}\n`)
  }
  const stream = (text: string): void => {
    if (text === '') return
    write(streaming ? text : `\n${text}`)
    lineOpen = !text.endsWith('\n')
    streaming = true
  }
  return { paint, cutAt, line, stream, endStream, note: (text) => line(paint('yellow', `! ${text}`)) }
}
