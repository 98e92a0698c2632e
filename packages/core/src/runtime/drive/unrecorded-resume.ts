import type { EventBatch } from '../../machine/advance.ts'
import { isSuspended } from '../../machine/next-action.ts'
import { requiredEffects } from '../../machine/required-effects.ts'
import type { RunState } from '../../machine/state.ts'
import type { ResumeCommand } from '../../events/commands.ts'
import { ownDefinition } from './drivable.ts'
import type { Drive } from './drive.ts'
import type { Mail } from './mailbox.ts'

/** The command `resume` of the process that takes a run over, until its event is on record. */
export class UnrecordedResume {
  #command: ResumeCommand | undefined
  #isHeldBack = false

  begin(state: RunState, drive: Drive): void {
    const definition = ownDefinition(state, drive)
    this.#command = {
      type: 'resume',
      why: requiredEffects(state).length > 0 ? 'crash' : 'command',
      definition,
    }
  }

  /** What has arrived, with its command in front, as long as that has to be decided. */
  before(page: readonly Mail[]): readonly Mail[] {
    return this.#command ? [{ message: this.#command }, ...page] : page
  }

  /** The messages of a batch other than its command. */
  others(mail: readonly Mail[]): readonly Mail[] {
    return mail.filter(({ message }) => message !== this.#command)
  }

  /**
   * Whether a batch, which takes entries out of the inbox or not, is kept off the record, since it only takes over a
   * suspended run as it is: however often a process resumes a run that waits, its ledger does not grow. The take-over
   * is recorded with the first event after it. What was found in the inbox is taken out of it, whatever it says; of
   * what comes later, only what is obeyed.
   */
  holdsBack(state: RunState | undefined, batch: EventBatch, hasEntries: boolean): boolean {
    this.#isHeldBack = isBare(state, batch) && (this.#isHeldBack || !hasEntries)
    return this.#isHeldBack
  }

  /** It is on record. */
  recorded(): void {
    this.#command = undefined
  }
}

/** Whether a batch holds nothing but the take-over of a suspended run. */
function isBare(state: RunState | undefined, { events, action }: EventBatch): state is RunState {
  const [resumed] = events
  if (state === undefined || events.length !== 1 || resumed?.type !== 'run_resumed') return false
  return resumed.definition === undefined && action.kind === 'suspend' && isSuspended(state)
}
