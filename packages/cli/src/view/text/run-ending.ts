import type { Usage } from '@tallystick/core'
import type { Tally } from '@tallystick/core/machine'
import type { EventOf } from '@tallystick/core/vocabulary'
import type { RunSpending } from '@tallystick/replay'

/** How a run ended, on one line. */
export function runEnding(event: EventOf<'run_finished'>): string {
  const { reason, detail, turns, toolCalls, usage, costUsd } = event
  const facts = [
    reason + (detail === undefined ? '' : ` (${detail})`),
    counted(turns, 'turn'),
    counted(toolCalls, 'tool call'),
    usageText(usage),
  ]
  if (costUsd !== undefined) facts.push(`$${costUsd.toFixed(4)}`)
  return facts.join(', ')
}

/** Tokens on one line; a number that no provider gave is a question mark. */
export function usageText({ inputTokens, outputTokens }: Usage): string {
  return `${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out`
}

/** What a stretch of a run took, on one line. */
export function spentText({ turns, toolCalls, reused, usage, costUsd }: RunSpending): string {
  const served = reused === 0 ? [] : [`${counted(reused, 'result')} from the record`]
  const cost = costUsd === undefined ? [] : [`$${costUsd.toFixed(4)}`]
  return [counted(turns, 'turn'), counted(toolCalls, 'tool call'), ...served, usageText(usage), ...cost].join(
    ', ',
  )
}

/** `1 turn`, `2 turns`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** The two halves of the tally, on one line. */
export function tallyText({ requests, results, open }: Tally): string {
  const names = open.length === 0 ? '' : ` (${open.join(', ')})`
  return `${counted(requests, 'request')}, ${counted(results, 'result')}, ${open.length} open${names}`
}
