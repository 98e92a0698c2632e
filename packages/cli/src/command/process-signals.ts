import type { CommandContext } from './command-context.ts'
import { exitCodes } from './exit-code.ts'

const signals = ['SIGINT', 'SIGTERM'] as const

/** What a stop signal calls. */
export interface StopActions {
  /** Stops the run, so that a later command can continue it. */
  readonly drain: () => Promise<unknown>
  /** Ends the run. Ctrl-C calls it, if it is given. */
  readonly cancel?: () => Promise<unknown>
}

/** Whether the process got a stop signal; `off` stops listening for signals. */
export interface StopRequest {
  readonly asked: boolean
  readonly off: () => void
}

/** The first stop signal brings the run to rest, or ends it; the second ends the process. */
export function stopOnSignal({ say }: CommandContext, { drain, cancel }: StopActions): StopRequest {
  const stop = {
    asked: false,
    off: () => signals.forEach((signal) => process.off(signal, onSignal)),
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.asked) process.exit(exitCodes.interrupted)
    stop.asked = true
    const cancels = signal === 'SIGINT' && cancel !== undefined
    say(
      cancels
        ? '\nCancelling: what was finished is kept. Once more ends this at once.'
        : '\nStopping: nothing more is started, and what is in flight may end. Once more ends this at once.',
    )
    const act = cancels ? cancel : drain
    // What went wrong is in the run's own result too.
    act().catch(() => undefined)
  }
  signals.forEach((signal) => process.on(signal, onSignal))
  return stop
}
