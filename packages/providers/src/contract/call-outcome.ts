import { type Model, type ModelRequest, ProviderError } from '@tallystick/core'
import { legibleText } from '@tallystick/core/kit'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { type Observable, take } from 'rxjs'
import type { ModelHarness, Scene, Stage } from './contract-case.ts'
import { require } from './expectation.ts'
import { type StillClock, stillClock } from './still-clock.ts'

/** The signals of one call, and how it ended. */
export interface CallOutcome {
  readonly signals: readonly ModelSignal[]
  /** Absent where the call completed. */
  readonly failure?: ProviderError
  readonly clock: StillClock
}

/** How a call is watched. */
export interface CallWatch {
  readonly clock?: StillClock
  /** Sees each signal as it comes, and how many there were before it. */
  readonly onSignal?: (signal: ModelSignal, before: number, clock: StillClock) => void
}

/** Calls the model and waits for the end. Rejects where it fails with anything but a `ProviderError`. */
export function callModel(
  model: Model,
  request: ModelRequest,
  watched: CallWatch = {},
): Promise<CallOutcome> {
  const clock = watched.clock ?? stillClock()
  const signals: ModelSignal[] = []
  return new Promise((resolve, reject) => {
    streamOf(model, request, clock).subscribe({
      next: (signal) => {
        signals.push(signal)
        watched.onSignal?.(signal, signals.length - 1, clock)
      },
      complete: () => resolve({ signals, clock }),
      error: (error: unknown) => {
        if (error instanceof ProviderError) resolve({ signals, failure: error, clock })
        else reject(strayError('a call fails with a ProviderError and nothing else', error))
      },
    })
  })
}

function streamOf(model: Model, request: ModelRequest, clock: StillClock): Observable<ModelSignal> {
  try {
    return model.stream(request, { clock })
  } catch (cause) {
    throw strayError('stream() throws nothing, whatever the request', cause)
  }
}

function strayError(claim: string, cause: unknown): Error {
  return new Error(`Not so: ${claim}. It is ${legibleText(cause)}.`, { cause })
}

/** Calls the model and gives it up at the signal of that number, from 1. */
export function callUpTo(model: Model, request: ModelRequest, count: number): Promise<CallOutcome> {
  const clock = stillClock()
  const signals: ModelSignal[] = []
  return new Promise((resolve, reject) => {
    model
      .stream(request, { clock })
      .pipe(take(count))
      .subscribe({
        next: (signal) => signals.push(signal),
        complete: () => resolve({ signals, clock }),
        error: reject,
      })
  })
}

/** Sets the stage, plays on it, and takes it down. */
export async function onStage<T>(
  harness: ModelHarness,
  scenes: readonly Scene[],
  play: (stage: Stage) => Promise<T>,
): Promise<T> {
  const stage = await harness.stage(scenes)
  try {
    return await play(stage)
  } finally {
    await stage.close()
  }
}

/** Waits until a condition holds, and checks it once per turn of the event loop. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  for (let turns = 0; turns < maxTurns; turns++) {
    if (holds()) return
    await turnOfTheLoop()
  }
  require(holds(), what)
}

const maxTurns = 2000

/** Lets everything happen that is about to. */
export function turnOfTheLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Returns the end of a reply. Throws if the call failed, or if its last signal is another one. */
export function endOf({
  signals,
  failure,
}: CallOutcome): Extract<ModelSignal, { readonly type: 'model_finished' }> {
  if (failure) throw new Error(`Not so: the call completes. It failed: ${failure.message}`)
  const end = signals.at(-1)
  if (end?.type !== 'model_finished') throw new Error('Not so: the last signal is model_finished.')
  return end
}
