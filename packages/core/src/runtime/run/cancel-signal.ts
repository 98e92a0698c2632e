import { textOfError } from '../../values/text.ts'
import type { OutsideCommandOf } from '../../events/commands.ts'
import { valueThat, type OptionCheck } from '../../values/option.ts'
import type { RunCoordinator } from '../coordinator/run-coordinator.ts'

/** An `AbortSignal`, as every JavaScript host has it. */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason?: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Something that can be aborted. */
export const someSignal: OptionCheck = valueThat('an AbortSignal', (value) => {
  const { aborted, addEventListener, removeEventListener } = Object(value) as Partial<CancelSignal>
  return (
    [addEventListener, removeEventListener].every((each) => typeof each === 'function') &&
    typeof aborted === 'boolean'
  )
})

/** The command that follows from an aborted signal; `undefined` as long as it is not. */
export function cancelCommandOf(signal: CancelSignal | undefined): OutsideCommandOf<'cancel'> | undefined {
  if (!signal?.aborted) return undefined
  const { reason } = signal
  if (reason === undefined) return { type: 'cancel' }
  return { type: 'cancel', reason: typeof reason === 'string' ? reason : textOfError(reason) }
}

/** Cancels a run when the signal is aborted, and forgets the signal when the run has ended. */
export function cancelWith(signal: CancelSignal, coordinator: RunCoordinator): void {
  const onAbort = (): void => {
    const command = cancelCommandOf(signal)
    // A run that takes no command has failed, and its handle says so.
    if (command) coordinator.send(command).catch(() => {})
  }
  const leave = (): void => signal.removeEventListener('abort', onAbort)
  signal.addEventListener('abort', onAbort)
  coordinator.live.subscribe({
    next: ({ type }) => {
      if (type === 'run_finished') leave()
    },
    error: leave,
  })
}
