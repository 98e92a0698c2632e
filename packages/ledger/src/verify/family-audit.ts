import { LedgerDamagedError, type Ledger, type RunId, type RuntimeEvent, type Usage } from '@tallystick/core'
import {
  canonicalJson,
  grantFields,
  limitOfField,
  type EventOf,
  type Grant,
} from '@tallystick/core/vocabulary'
import { fault, type Fault } from '../format/event-row.ts'

/** Sums of dollars are rounded. */
const ROUNDING = 1e-9

/** A child run that a run has started, and what it has counted for it. */
interface Started {
  readonly runId: RunId
  readonly seq: number
  readonly grant: Grant
  counted?: EventOf<'tool_result'>['child']
}

/**
 * Law 9 between runs: the limits of each child run are within what its parent granted it, and its parent counts no less
 * than the child's own events say. Child runs that are not there any more, or that are damaged, are left out: their own
 * verdicts say so.
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
      const found = await faultOf(ledger, started)
      if (found) return { seq: started.seq, ...found }
    }
    return undefined
  }
}

async function faultOf(ledger: Ledger, started: Started): Promise<Fault | undefined> {
  try {
    return (await limitFault(ledger, started)) ?? (await totalsFault(ledger, started))
  } catch (error) {
    if (error instanceof LedgerDamagedError) return undefined
    throw error
  }
}

async function limitFault(ledger: Ledger, { runId, grant }: Started): Promise<Fault | undefined> {
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    if (event.type !== 'run_started') return undefined
    for (const field of grantFields) {
      const granted = grant[field]
      const limit = limitOfField[field]
      const own = event.limits[limit] ?? Infinity
      if (granted !== undefined && own > granted) {
        return fault('law 9', `${limit} of child run ${runId} within its grant of ${granted}`, own)
      }
    }
    const known = canonicalJson({ ...event.parent?.grant })
    if (known !== canonicalJson(grant)) {
      return fault('law 9', `the grant of child run ${runId} as its parent recorded it`, known)
    }
  }
  return undefined
}

/** Of a child run that was counted before it had ended, the parent knows only what is granted. */
async function totalsFault(ledger: Ledger, { runId, counted, grant }: Started): Promise<Fault | undefined> {
  const head = counted && (await ledger.head(runId))
  if (counted === undefined || head === undefined) return undefined
  for await (const event of ledger.read(runId, { fromSeq: head.seq })) {
    if (event.type !== 'run_finished') return undefined
    const pairs = [
      ['inputTokens', 'input tokens', counted.usage.inputTokens, event.usage.inputTokens],
      ['outputTokens', 'output tokens', counted.usage.outputTokens, event.usage.outputTokens],
      ['tokens', 'tokens', tokensOf(counted.usage), tokensOf(event.usage)],
      ['costUsd', 'dollars', counted.costUsd, event.costUsd],
      ['turns', 'turns', counted.turns, event.turns],
      ['toolCalls', 'tool calls', counted.toolCalls, event.toolCalls],
    ] as const
    const known = pairs.filter(([field]) => counted.estimated !== true || grant[field] !== undefined)
    const short = known.find(([, , mine = 0, its = 0]) => mine < its * (1 - ROUNDING))
    if (short) {
      const [, what, mine = 0, its = 0] = short
      return fault('law 9', `${its} ${what} of child run ${runId}, as its own events say`, mine)
    }
  }
  return undefined
}

function tokensOf({ inputTokens = 0, outputTokens = 0 }: Usage): number {
  return inputTokens + outputTokens
}
