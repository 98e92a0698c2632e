import type { RuntimeEvent } from '../events/event.ts'
import { advance } from '../machine/advance.ts'
import { evolve } from '../machine/evolve.ts'
import type { RunState } from '../machine/state.ts'
import { RunNotFoundError } from '../values/errors.ts'
import { parseRunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { anyText, type Fault, fields, filledText, maybe, placeFault, valueThat } from '../values/option.ts'
import { type CommandAcknowledgement, isOvertaken } from './commands.ts'
import { removeEndedContent } from './ended-content.ts'
import type { RuntimeParts } from './runtime-parts.ts'

/** What someone says of a run that has ended: a score, a note, or both. */
export interface Feedback {
  /** Who says it: a person, or a program such as a scorer. */
  readonly by: string
  /** Higher is better. The scale is the application's; `evaluate` and its scorers use 0 to 1. */
  readonly score?: number | undefined
  readonly note?: string | undefined
}

const feedbackFields = fields<Feedback>({
  by: filledText,
  score: maybe(valueThat('a finite number', Number.isFinite)),
  note: maybe(anyText),
})

const whatIsSaid = valueThat('a score, a note, or both', (value) => {
  const { score, note } = Object(value) as Partial<Feedback>
  return score !== undefined || (note !== undefined && note !== '')
})

/** Returns what is wrong with feedback that a caller gave; `undefined` if nothing is. */
export function findFeedbackFault(feedback: unknown): Fault | undefined {
  return placeFault('the feedback', feedbackFields(feedback) ?? whatIsSaid(feedback))
}

/**
 * Records feedback behind the end of a run, whichever process drove it, in one append. Nothing drives a run that has ended, so
 * only other feedback can come first: then the run is read again. Under a key that the run has feedback of, it changes nothing.
 */
export async function recordFeedback(
  { ledger, host, agents, defaults }: Pick<RuntimeParts, 'ledger' | 'host' | 'agents' | 'defaults'>,
  text: string,
  { by, score, note }: Feedback,
  key?: string,
): Promise<CommandAcknowledgement> {
  const runId = parseRunId(text)
  const head = runId && (await ledger.head(runId))
  if (runId === undefined || head === undefined) throw new RunNotFoundError(text)
  const command = { type: 'feedback', by, ...omitUndefined({ score, note }) } as const
  for (;;) {
    const { seq, epoch } = (await ledger.head(runId)) ?? head
    let state: RunState | undefined
    let isKnown = false
    for await (const event of ledger.read(runId, { toSeq: seq })) {
      state = evolve(state, event)
      isKnown ||= key !== undefined && isUnderKey(event, key)
    }
    if (isKnown) return { accepted: true }
    if (state === undefined) throw new RunNotFoundError(text)
    const at = Math.max(state.at, host.clock.now())
    const stamp = (): { at: number; random: number } => ({ at, random: 0 })
    const { events, refusals } = advance(state, [command], { writer: { runId, epoch }, stamp, keys: [key] })
    const [refused] = refusals
    if (refused) return { accepted: false, ...refused }
    try {
      await ledger.append(runId, { expectedSeq: seq, epoch }, events, { durability: 'barrier' })
    } catch (error) {
      if (isOvertaken(error)) continue
      throw error
    }
    await removeEndedContent(state, { ledger, host, agents, defaults })
    return { accepted: true }
  }
}

function isUnderKey({ type, inboxKey }: RuntimeEvent, key: string): boolean {
  return type === 'feedback_given' && inboxKey === key
}
