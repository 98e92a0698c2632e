import type { EventOf, RuntimeEvent } from '../events/event.ts'
import { toEvent } from '../machine/advance.ts'
import { decideFeedback } from '../machine/decide.ts'
import { RunNotFoundError } from '../values/errors.ts'
import { parseRunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { anyText, type Fault, fields, filledText, maybe, placeFault, valueThat } from '../values/option.ts'
import { type CommandAcknowledgement, createDuplicateSendError, isOvertaken } from './commands.ts'
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

/** What holds the definitions of the run, and its feedback. */
const readTypes = ['run_started', 'run_resumed', 'agent_handed_off', 'feedback_given'] as const

/**
 * Records feedback behind the end of a run, whichever process drove it, in one append. Nothing drives a run that has ended, so
 * only other feedback can come first: then it is tried again. Under a key that the run has it of, it changes nothing, and other
 * feedback under that key rejects with a `LedgerConflictError`. However long the run is, its last event says whether it has ended.
 */
export async function recordFeedback(
  parts: Pick<RuntimeParts, 'ledger' | 'host' | 'agents' | 'defaults'>,
  text: string,
  { by, score, note }: Feedback,
  key?: string,
): Promise<CommandAcknowledgement> {
  const { ledger, host } = parts
  const runId = parseRunId(text)
  const command = { type: 'feedback', by, ...omitUndefined({ score, note }) } as const
  for (;;) {
    const head = runId && (await ledger.head(runId))
    if (runId === undefined || head === undefined) throw new RunNotFoundError(text)
    const { seq, epoch } = head
    let last: RuntimeEvent | undefined
    for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) last = event
    let started: EventOf<'run_started'> | undefined
    for await (const event of ledger.find({ runId, types: readTypes })) {
      if (event.type === 'feedback_given' && key !== undefined && event.inboxKey === key) {
        if (saysSame(event, command)) return { accepted: true }
        throw createDuplicateSendError(runId, key)
      }
      if (event.type === 'run_started') started = event
      else if (started && 'definition' in event && event.definition)
        started = { ...started, definition: event.definition }
    }
    if (last === undefined || started === undefined) throw new RunNotFoundError(text)
    const phase = last.type === 'run_finished' || last.type === 'feedback_given' ? 'done' : 'idle'
    const decision = decideFeedback({ runId, phase, turn: last.turn }, command)
    if ('refused' in decision) return { accepted: false, ...decision.refused }
    const at = Math.max(last.at, host.clock.now())
    const place = { runId, epoch, seq: seq + 1, at, cause: command.type, inboxKey: key }
    const events = decision.facts.map((fact) => toEvent(fact, place))
    try {
      await ledger.append(runId, { expectedSeq: seq, epoch }, events, { durability: 'barrier' })
    } catch (error) {
      if (isOvertaken(error)) continue
      throw error
    }
    await removeEndedContent({ ...started, phase }, parts)
    return { accepted: true }
  }
}

/** Of removed content only who has said it is compared. */
function saysSame({ by, score, note, removed }: EventOf<'feedback_given'>, said: Feedback): boolean {
  return by === said.by && (removed !== undefined || (score === said.score && note === said.note))
}
