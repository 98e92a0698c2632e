import type { LiveText, Run, RunId } from '@tallystick/core'
import type { Observable } from 'rxjs'

/** The runs that requests to this process started or resumed, for the text of their replies before it is on record. */
export class LiveTexts {
  readonly #runs = new Map<string, Run>()

  /** Holds a run until it stops. */
  add(run: Run): void {
    this.#runs.set(run.id, run)
    const forget = (): void => {
      if (this.#runs.get(run.id) === run) this.#runs.delete(run.id)
    }
    run.result.then(forget, forget)
  }

  /** The text of a run from now on; `undefined` for a run that this process does not hold. */
  of(runId: RunId): Observable<LiveText> | undefined {
    return this.#runs.get(runId)?.liveText$
  }
}

/** The most characters that wait for a reader. Text beyond that is left out: the record brings it. */
const maxPending = 65_536

/** Adds frames to a stream as they come, between its chunks. Ends with the stream. */
export function mergeFrames(
  stream: ReadableStream<Uint8Array>,
  frames$: Observable<string>,
  onError: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  const encoder = new TextEncoder()
  let reading: ReturnType<typeof reader.read> | undefined
  let pending = ''
  let arrived = Promise.withResolvers<'frames'>()
  const frames = frames$.subscribe({
    next: (frame) => {
      if (pending.length < maxPending) pending += frame
      arrived.resolve('frames')
    },
    error: onError,
  })
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        reading ??= reader.read()
        const first = await Promise.race([arrived.promise, reading])
        if (first === 'frames') {
          arrived = Promise.withResolvers()
          controller.enqueue(encoder.encode(pending))
          pending = ''
          return
        }
        reading = undefined
        if (!first.done) return controller.enqueue(first.value)
        frames.unsubscribe()
        controller.close()
      },
      async cancel(reason) {
        frames.unsubscribe()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
