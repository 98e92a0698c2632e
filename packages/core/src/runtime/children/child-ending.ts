import type { OutsideCommand } from '../../events/commands.ts'
import type { ResultPart } from '../../events/content.ts'
import type { ChildTotals } from '../../events/event.ts'
import type { RunResult } from '../reading/run-result.ts'

/** How a child run has stopped: it waits for something from outside, was never begun, or has ended. */
export type ChildStop =
  | { readonly kind: 'waits' }
  | { readonly kind: 'never_begun' }
  | {
      readonly kind: 'ended'
      readonly outcome: 'success' | 'failed' | 'cancelled'
      readonly content: readonly ResultPart[]
      readonly totals: ChildTotals
    }

/** A child run that has ended. */
export type ChildEnding = Extract<ChildStop, { readonly kind: 'ended' }>

/** The command that settles a call of the parent with the ending of its child run. */
export function settleCommandOf(
  toolCallId: string,
  { outcome, content, totals: child }: ChildEnding,
): Extract<OutsideCommand, { readonly type: 'settle' }> {
  return { type: 'settle', toolCallId, outcome: outcome === 'success' ? 'success' : 'failed', content, child }
}

/** How a child run has stopped, for the call of its parent. */
export function childStopOf(result: RunResult): ChildStop {
  if (result.status !== 'done') return { kind: 'waits' }
  const { outcome, text } = endingText(result)
  return { kind: 'ended', outcome, content: [{ type: 'text', text }], totals: totalsOf(result) }
}

/** What a run used, with its child runs. */
export function totalsOf(result: RunResult): ChildTotals {
  const { runId, usage, costUsd, turns, toolCalls, children } = result
  return {
    runId,
    usage,
    turns: turns + children.turns,
    toolCalls: toolCalls + children.toolCalls,
    ...(costUsd !== undefined && { costUsd }),
  }
}

/** Reasons of a run that stopped at a limit, and may have written down what it had. */
const limited: ReadonlySet<string> = new Set([
  'turn_limit',
  'tool_call_limit',
  'token_limit',
  'cost_limit',
  'time_limit',
  'repeat_limit',
  'stopped',
])

function endingText({ reason = 'model_failed', detail, text }: RunResult): {
  readonly outcome: 'success' | 'failed' | 'cancelled'
  readonly text: string
} {
  if (reason === 'answered')
    return { outcome: 'success', text: text === '' ? 'The work is done, and its answer is empty.' : text }
  const why = detail === undefined ? reason : `${reason}: ${detail}`
  if (reason === 'cancelled') return { outcome: 'cancelled', text: `The work was cancelled (${why}).` }
  if (limited.has(reason) && text !== '') {
    return { outcome: 'success', text: `The work was stopped early (${why}). What there was of it:\n${text}` }
  }
  const rest = text === '' ? '' : ` Its last words were:\n${text}`
  return { outcome: 'failed', text: `The work ended without an answer (${why}).${rest}` }
}
