import type { RuntimeEvent } from '@tallystick/core'
import { printEvent } from './event-lines.ts'
import type { Paint } from '../../terminal/paint.ts'
import { screenOn } from '../../terminal/screen.ts'

/** Where a run is printed, and how. */
export interface RunPrinterOptions {
  /** Takes text as it comes, line breaks included. */
  readonly write: (text: string) => void
  readonly paint: Paint
  /** Where inputs and results are cut, in characters. Default 400. */
  readonly cutAt?: number
}

/**
 * Prints a run for a person, event by event: the reply's text as it streams, and each tool call with its two halves,
 * the request and the result, under the one id that joins them.
 */
export function runPrinter({ write, paint, cutAt = 400 }: RunPrinterOptions): (event: RuntimeEvent) => void {
  const screen = screenOn(write, { paint, cutAt })
  return (event) => printEvent(event, screen)
}
