import type { RuntimeEvent } from '@tallystick/core'

/** How many values each part of a number has. */
const places = { turn: 2 ** 24, attempt: 2 ** 6, ordinal: 2 ** 12, start: 2 ** 9 } as const

/** In the place of a start: the result of a call, after all its starts, so that numbers rise as facts are recorded. */
const result = places.start - 1

/**
 * The number of the fact that an event states about a call of its own run, where that fact may be recorded once: that the
 * call was started at an attempt, or has its result. No two facts of a run share a number. `undefined` for all other
 * events, and where the call has numbers beyond all use: these facts are kept apart by their name alone. Triggers of the
 * stores compute the same for rows that have the name of their fact.
 */
export function factNumberOf(event: RuntimeEvent): number | undefined {
  if (event.type === 'tool_result') return numberOf(event, result)
  if (event.type !== 'tool_started' || !isStart(event.attempt)) return undefined
  return numberOf(event, event.attempt)
}

function isStart(attempt: number): boolean {
  return Number.isInteger(attempt) && attempt >= 0 && attempt < result
}

const zero = 0x30

type OfCall = { readonly runId: string; readonly toolCallId: string }

function numberOf({ runId, toolCallId }: OfCall, start: number): number | undefined {
  const short = shortCallId(runId, toolCallId)
  if (short === undefined) return undefined
  let [turn, attempt, ordinal] = [0, 0, 0]
  for (let index = 0; index < short.length; index++) {
    const digit = short.charCodeAt(index) - zero
    if (digit < 0 || digit > 9) [turn, attempt, ordinal] = [attempt, ordinal, 0]
    else ordinal = 10 * ordinal + digit
  }
  const isWithin = turn < places.turn && attempt < places.attempt && ordinal < places.ordinal
  if (!isWithin) return undefined
  return ((turn * places.attempt + attempt) * places.ordinal + ordinal) * places.start + start
}

const shortShape = /^(?:0|[1-9]\d*)_(?:0|[1-9]\d*)_(?:0|[1-9]\d*)$/

/** The call that was asked for last: an append asks several times for the same one. */
let lastCall: OfCall & { readonly short: string | undefined } = {
  runId: '',
  toolCallId: '',
  short: undefined,
}

/** The turn, attempt and ordinal in the id of a call; `undefined` where it is no call of this run. */
export function shortCallId(runId: string, toolCallId: string): string | undefined {
  if (toolCallId !== lastCall.toolCallId || runId !== lastCall.runId) {
    const prefix = callPrefixOf(runId)
    const short = toolCallId.startsWith(prefix) ? toolCallId.slice(prefix.length) : ''
    lastCall = { runId, toolCallId, short: shortShape.test(short) ? short : undefined }
  }
  return lastCall.short
}

/** The id of a call of a run by its turn, attempt and ordinal. */
export function longCallId(runId: string, short: string): string {
  return callPrefixOf(runId) + short
}

let lastRun = { runId: '', prefix: 'call__' }

/** What the ids of the calls of a run begin with. Most often it is the run that was asked for last. */
function callPrefixOf(runId: string): string {
  if (runId !== lastRun.runId) lastRun = { runId, prefix: `call_${runId.replaceAll('-', '')}_` }
  return lastRun.prefix
}
