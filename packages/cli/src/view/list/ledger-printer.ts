import type { RunId, RuntimeEvent } from '@tallystick/core'
import { printEvent } from '../run/event-lines.ts'
import type { RunPrinterOptions } from '../run/run-printer.ts'
import { screenOn } from '../../terminal/screen.ts'

/** Prints many runs for a person, interleaved: a line names the run whose events follow. */
export function ledgerPrinter({
  write,
  paint,
  cutAt = 400,
}: RunPrinterOptions): (event: RuntimeEvent) => void {
  const screen = screenOn(write, { paint, cutAt })
  let shown: RunId | undefined
  return (event) => {
    if (event.runId !== shown) screen.line(paint('dim', `── ${event.runId}`))
    shown = event.runId
    printEvent(event, screen)
  }
}
