import {
  IllegalTransitionError,
  LawBrokenError,
  TallystickError,
  type Message,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { audit } from '@tallystick/core/machine'
import { onceKeyOf, type SessionPlace } from '@tallystick/core/store-kit'
import { idFaultOf, shapeFaultOf } from '@tallystick/core/vocabulary'
import { fault, type Fault } from '../format/event-row.ts'
import { quotedId } from '../format/stored-ids.ts'
import { OutlineFold, type RunOutline } from '../projection/snapshot/run-outline.ts'
import { RunAccumulator, type AccumulatedRun } from '../projection/summary/run-accumulator.ts'

/** What an audit knows of a run after one of its events. */
export interface AuditedRun {
  /** `undefined` before the first event. */
  readonly state: RunState | undefined
  /** `undefined` where the audit was not to accumulate. */
  readonly accumulated: AccumulatedRun | undefined
  readonly outline: RunOutline | undefined
  /** What the run began with. */
  readonly carried: readonly Message[]
}

/** Checks the laws over the events of one run, one after the other. */
export class EventAudit {
  #state: RunState | undefined
  readonly #accumulator: RunAccumulator | undefined
  readonly #outline: OutlineFold | undefined
  #carried: readonly Message[] = []
  readonly #onceKeys = new Set<string>()

  /** `accumulates`: whether it also accumulates what summaries and snapshots of the run hold. */
  constructor({ accumulates = false }: { readonly accumulates?: boolean } = {}) {
    if (!accumulates) return
    this.#accumulator = new RunAccumulator()
    this.#outline = new OutlineFold()
  }

  /** What is known of the run after the last sound event. */
  get known(): AuditedRun {
    return {
      state: this.#state,
      accumulated: this.#accumulator?.run,
      outline: this.#outline?.outline,
      carried: this.#carried,
    }
  }

  /** The session of the run and its place there, from its first event. */
  get session(): SessionPlace | undefined {
    const { sessionId, sessionPlace = 1 } = this.#state ?? {}
    return sessionId === undefined ? undefined : { sessionId, sessionPlace }
  }

  /** The first law that the next event breaks, or its first field that has another shape. */
  faultOf(event: RuntimeEvent): Fault | undefined {
    const onceKey = onceKeyOf(event)
    if (onceKey !== undefined && this.#onceKeys.has(onceKey)) return fault(onceKey, 'once', 'twice')
    if (onceKey !== undefined) this.#onceKeys.add(onceKey)
    try {
      const state = audit(this.#state, event)
      const misshapen = shapeFault(event)
      if (misshapen) return misshapen
      this.#state = state
      this.#accumulator?.add(event)
      this.#outline?.add(event)
      if (event.type === 'history_carried') this.#carried = event.messages
      return undefined
    } catch (error) {
      return lawFault(error, event)
    }
  }
}

/** A field that does not have the shape of its type: the machine may pass over it, and others build on it. */
function shapeFault(event: RuntimeEvent): Fault | undefined {
  const id = idFaultOf(event)
  if (id) return fault(id.path, id.expected, quotedId(id.found))
  const found = shapeFaultOf(event)
  return found && fault(found.path, `as ${event.type} has it`, found.what)
}

function lawFault(error: unknown, event: RuntimeEvent): Fault {
  if (error instanceof IllegalTransitionError) {
    return fault('law 5', error.legal.join(', ') || 'no event', `${event.type}: ${error.message}`)
  }
  if (error instanceof LawBrokenError) return fault(`law ${error.law}`, 'the law holds', error.message)
  const reason = error instanceof TallystickError ? error.message : 'the fold fails on it'
  return fault(event.type, 'an event that can be folded', reason)
}
