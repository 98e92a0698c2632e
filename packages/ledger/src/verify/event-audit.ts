import {
  IllegalTransitionError,
  LawBrokenError,
  type Ledger,
  LedgerDamagedError,
  type Message,
  type RunId,
  type RunState,
  type RuntimeEvent,
  TallystickError,
  type Usage,
} from '@tallystick/core'
import { grantFields, findEventIdFault, limitOfField, findEventShapeFault } from '@tallystick/core/internal'
import { audit } from '@tallystick/core/machine'
import { deriveOnceKey, type SessionPlace } from '@tallystick/core/store-kit'
import { toCanonicalJson, type EventOf, type Grant } from '@tallystick/core/vocabulary'
import { createFault, type Fault, quoteId } from '../format/event-row.ts'
import { type AccumulatedRun, RunAccumulator } from '../projection/run-accumulator.ts'

/** A run after one of its events, as an audit knows it. */
export interface AuditedRun {
  /** `undefined` before the first event. */
  readonly state: RunState | undefined
  /** `undefined` if the audit was not to accumulate. */
  readonly accumulated: AccumulatedRun | undefined
  /** The messages that the run began with. */
  readonly carried: readonly Message[]
}

/** Checks the laws over the events of one run, one after the other. */
export class EventAudit {
  #state: RunState | undefined
  readonly #accumulator: RunAccumulator | undefined
  #carried: readonly Message[] = []
  readonly #onceKeys = new Set<string>()

  /** `accumulates`: whether it also accumulates what the summary of the run holds beside its state. */
  constructor({ accumulates = false }: { readonly accumulates?: boolean } = {}) {
    if (accumulates) this.#accumulator = new RunAccumulator()
  }

  /** The run after the last sound event. */
  get known(): AuditedRun {
    return {
      state: this.#state,
      accumulated: this.#accumulator?.run,
      carried: this.#carried,
    }
  }

  /** The session of the run and its place there, from its first event. */
  get session(): SessionPlace | undefined {
    const { sessionId, sessionPlace = 1 } = this.#state ?? {}
    return sessionId === undefined ? undefined : { sessionId, sessionPlace }
  }

  /** The first law that the next event breaks, or its first field that has another shape. */
  check(event: RuntimeEvent): Fault | undefined {
    const onceKey = deriveOnceKey(event)
    if (onceKey !== undefined && this.#onceKeys.has(onceKey)) return createFault(onceKey, 'once', 'twice')
    if (onceKey !== undefined) this.#onceKeys.add(onceKey)
    try {
      const state = audit(this.#state, event)
      const misshapen = findShapeFault(event)
      if (misshapen) return misshapen
      this.#state = state
      this.#accumulator?.add(event)
      if (event.type === 'history_carried') this.#carried = event.messages
      return undefined
    } catch (error) {
      return toLawFault(error, event)
    }
  }
}

/** A field that does not have the shape of its type: the machine may pass over it, and others build on it. */
function findShapeFault(event: RuntimeEvent): Fault | undefined {
  const id = findEventIdFault(event)
  if (id) return createFault(id.path, id.expected, quoteId(id.found))
  const found = findEventShapeFault(event)
  return found && createFault(found.path, `as ${event.type} has it`, found.what)
}

function toLawFault(error: unknown, event: RuntimeEvent): Fault {
  if (error instanceof IllegalTransitionError) {
    return createFault('law 5', error.legal.join(', ') || 'no event', `${event.type}: ${error.message}`)
  }
  if (error instanceof LawBrokenError) return createFault(`law ${error.law}`, 'the law holds', error.message)
  const reason = error instanceof TallystickError ? error.message : 'the fold fails on it'
  return createFault(event.type, 'an event that can be folded', reason)
}

/** Sums of dollars are rounded. */
const ROUNDING = 1e-9

/** A child run, and what its parent has counted for it. */
interface Started {
  readonly runId: RunId
  readonly seq: number
  readonly grant: Grant
  counted?: EventOf<'tool_result'>['child']
}

/**
 * Law 9 between runs: the limits of each child run are within what its parent granted it, and its parent counts no less than
 * the child's own events say. Child runs that are missing or damaged are left out: their own verdicts say so.
 */
export class FamilyAudit {
  readonly #children = new Map<string, Started>()

  /** Takes note of a sound event of the parent. */
  handle(event: RuntimeEvent): void {
    if (event.type === 'tool_started' && event.child !== undefined && event.attempt === 1) {
      const { toolCallId, child: runId, seq, grant = {} } = event
      this.#children.set(toolCallId, { runId, seq, grant })
    }
    if (event.type !== 'tool_result') return
    const started = this.#children.get(event.toolCallId)
    // A result without totals counts nothing: the child run was never begun.
    if (started) started.counted = event.child ?? { runId: started.runId, turns: 0, toolCalls: 0, usage: {} }
  }

  /** The first fault between the run and its child runs, with the event of the parent that it is about. */
  async fault(ledger: Ledger): Promise<(Fault & { readonly seq: number }) | undefined> {
    for (const started of this.#children.values()) {
      const found = await findChildFault(ledger, started)
      if (found) return { seq: started.seq, ...found }
    }
    return undefined
  }
}

async function findChildFault(ledger: Ledger, started: Started): Promise<Fault | undefined> {
  try {
    return (await findLimitFault(ledger, started)) ?? (await findTotalsFault(ledger, started))
  } catch (error) {
    if (error instanceof LedgerDamagedError) return undefined
    throw error
  }
}

async function findLimitFault(ledger: Ledger, { runId, grant }: Started): Promise<Fault | undefined> {
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    if (event.type !== 'run_started') return undefined
    for (const field of grantFields) {
      const granted = grant[field]
      const limit = limitOfField[field]
      const own = event.limits[limit] ?? Infinity
      if (granted !== undefined && own > granted) {
        return createFault('law 9', `${limit} of child run ${runId} within its grant of ${granted}`, own)
      }
    }
    const known = toCanonicalJson({ ...event.parent?.grant })
    if (known !== toCanonicalJson(grant)) {
      return createFault('law 9', `the grant of child run ${runId} as its parent recorded it`, known)
    }
  }
  return undefined
}

/** The end of a run, which feedback may follow; `undefined` if it goes on. */
async function readEnd(ledger: Ledger, runId: RunId): Promise<EventOf<'run_finished'> | undefined> {
  for await (const event of ledger.find({ runId, types: ['run_finished'] }))
    if (event.type === 'run_finished') return event
  return undefined
}

/** Of a child run that was counted before it had ended, the parent knows only what is granted. */
async function findTotalsFault(
  ledger: Ledger,
  { runId, counted, grant }: Started,
): Promise<Fault | undefined> {
  const end = counted && (await readEnd(ledger, runId))
  if (counted === undefined || end === undefined) return undefined
  const pairs = [
    ['inputTokens', 'input tokens', counted.usage.inputTokens, end.usage.inputTokens],
    ['outputTokens', 'output tokens', counted.usage.outputTokens, end.usage.outputTokens],
    ['tokens', 'tokens', countTokens(counted.usage), countTokens(end.usage)],
    ['costUsd', 'dollars', counted.costUsd, end.costUsd],
    ['turns', 'turns', counted.turns, end.turns],
    ['toolCalls', 'tool calls', counted.toolCalls, end.toolCalls],
  ] as const
  const known = pairs.filter(([field]) => counted.estimated !== true || grant[field] !== undefined)
  const short = known.find(([, , mine = 0, its = 0]) => mine < its * (1 - ROUNDING))
  if (short === undefined) return undefined
  const [, what, mine = 0, its = 0] = short
  return createFault('law 9', `${its} ${what} of child run ${runId}, as its own events say`, mine)
}

function countTokens({ inputTokens = 0, outputTokens = 0 }: Usage): number {
  return inputTokens + outputTokens
}
