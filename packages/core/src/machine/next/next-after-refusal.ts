import type { Message, Outcome } from '../../vocabulary/model/content.ts'
import type { FactOf, HistoryEdit } from '../../vocabulary/events/event.ts'
import type { Action } from '../state/action.ts'
import { messagesOf } from '../messages/history.ts'
import type { CollectingState, InjectingState } from '../state/state.ts'

/** The end of a run, with a refused turn left out of the history where the agent or the vendor asks for that. */
export function withoutRefused(state: CollectingState | InjectingState, action: Action): Action {
  if (action.kind !== 'finish' || !isLeftOut(state)) return action
  const edits = editsOf(messagesOf(state.history), state.exchangeFrom)
  if (edits.length === 0) return action
  const fact: FactOf<'history_edited'> = {
    type: 'history_edited',
    turn: state.turn,
    edits,
    reason: 'The model refused this exchange, and would refuse what is asked behind it.',
  }
  return { kind: 'finish', facts: [fact, ...action.facts] }
}

function isLeftOut({
  reply: { message, refusal, failure },
  definition,
}: CollectingState | InjectingState): boolean {
  const wanted = definition.onRefusal?.history
  if (message.stopReason === 'refused') {
    return wanted === undefined ? refusal?.leaveOut === true : wanted === 'leave_out'
  }
  if (failure?.class === 'refused') return wanted !== 'keep'
  return message.stopReason === 'content_filtered' && wanted === 'leave_out'
}

/** All from the first message of the exchange on; that tools ran in it, stays said. */
function editsOf(messages: readonly Message[], from: number): readonly HistoryEdit[] {
  const refused = messages.slice(from)
  const ran = refused.flatMap((message) => (message.role === 'tool' ? message.results : []))
  const toolsRun = ran
    .filter(({ outcome }) => !nothingRan.has(outcome))
    .map(({ name, outcome }) => `${name} (${outcome})`)
  return refused.map((_, place): HistoryEdit => {
    const index = from + place
    return place === 0 && toolsRun.length > 0 ? { index, message: placeholderMessage(toolsRun) } : { index }
  })
}

/** Outcomes that say that the tool was not started. */
const nothingRan: ReadonlySet<Outcome> = new Set([
  'invalid_input',
  'unknown_tool',
  'denied',
  'repeated',
  'limit_reached',
  'skipped',
])

function placeholderMessage(toolsRun: readonly string[]): Message {
  const text = `(An exchange stood here that a model refused to go on with, and it was left out. Tools that ran in it: ${toolsRun.join(', ')}.)`
  return { role: 'user', parts: [{ type: 'text', text }] }
}
