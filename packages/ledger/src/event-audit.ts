import {
  audit,
  IllegalTransitionError,
  LawBrokenError,
  onceKeyOf,
  TallystickError,
  type RunState,
  type RuntimeEvent,
  type SessionPlace,
} from '@tallystick/core'
import { fault, type Fault } from './link-check.ts'
import { RunNotebook } from './projection/run-notes.ts'
import { recordOf, type SummaryRecord } from './projection/summary-record.ts'

/** Checks the laws over the events of one run, one after the other. */
export class EventAudit {
  #state: RunState | undefined
  readonly #notebook = new RunNotebook()
  readonly #onceKeys = new Set<string>()

  /** What is known of the run behind the last sound event; `undefined` before the first. */
  get record(): SummaryRecord | undefined {
    return this.#state && recordOf(this.#state, this.#notebook.notes)
  }

  get state(): RunState | undefined {
    return this.#state
  }

  /** Where the run stands in its session, as its first event says. */
  get session(): SessionPlace | undefined {
    const { sessionId, sessionPlace = 1 } = this.#state ?? {}
    return sessionId === undefined ? undefined : { sessionId, sessionPlace }
  }

  /** The first law that the next event breaks. */
  faultOf(event: RuntimeEvent): Fault | undefined {
    const onceKey = onceKeyOf(event)
    if (onceKey !== undefined && this.#onceKeys.has(onceKey)) return fault(onceKey, 'once', 'twice')
    if (onceKey !== undefined) this.#onceKeys.add(onceKey)
    try {
      this.#state = audit(this.#state, event)
      this.#notebook.hear(event)
      return undefined
    } catch (error) {
      return lawFault(error, event)
    }
  }
}

function lawFault(error: unknown, event: RuntimeEvent): Fault {
  if (error instanceof IllegalTransitionError) {
    return fault('law 5', error.legal.join(', ') || 'no event', `${event.type}: ${error.message}`)
  }
  if (error instanceof LawBrokenError) return fault(`law ${error.law}`, 'the law holds', error.message)
  const reason = error instanceof TallystickError ? error.message : 'the fold fails on it'
  return fault(event.type, 'an event that can be folded', reason)
}
