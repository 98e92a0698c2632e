import { StringDecoder } from 'node:string_decoder'
import type { Json } from '@tallystick/core/vocabulary'
import type { Timers } from '../timers.ts'
import { visibleText } from '../../content/visible-text.ts'

/** Milliseconds between two reports. */
const everyMs = 100

/** The streams that a program writes to. */
export type StreamName = 'stdout' | 'stderr'

/** Reports what a program writes while it runs. */
export interface OutputProgress {
  write(stream: StreamName, chunk: Buffer): void
  /** Reports what is left, and sets no timer any more. */
  end(): void
}

/**
 * Reports `{ stream, text }`, ten times a second at most. After `maxBytes` it says once that it reports no more: a flood
 * must not fill the ledger.
 */
export function outputProgress(
  report: (data: Json) => void,
  maxBytes: number,
  timers: Timers,
): OutputProgress {
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  let waiting: { readonly stream: StreamName; text: string }[] = []
  let [left, cancel, isOver] = [maxBytes, undefined as (() => void) | undefined, false]
  const flush = (): void => {
    cancel = undefined
    const reports = waiting
    waiting = []
    for (const { stream, text } of reports) {
      const visible = visibleText(text)
      if (visible !== '') report({ stream, text: visible })
    }
  }
  return {
    write(stream, chunk) {
      if (isOver) return
      const text = decoders[stream].write(chunk.subarray(0, left))
      left -= chunk.length
      const last = waiting.at(-1)
      if (last?.stream === stream) last.text += text
      else waiting.push({ stream, text })
      cancel ??= timers.schedule(everyMs, flush)
      if (left >= 0) return
      isOver = true
      cancel()
      flush()
      report({ note: `More than ${maxBytes} bytes were written: further output is not reported.` })
    },
    end() {
      cancel?.()
      if (!isOver) flush()
      isOver = true
    },
  }
}
