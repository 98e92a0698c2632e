import { defaultLimits } from '../../vocabulary/limits/limits.ts'
import type { Call, ExecutingState } from '../state/state.ts'
import { summaryOf } from '../state/turn-calls.ts'

/**
 * Returns the calls to start now, of those that `isStartable` accepts. Reads start together, up to the limit
 * `maxConcurrency` of the run; writes start one at a time, in request order. The `maxConcurrency` of a tool and the
 * `serial` key of a call hold for both.
 */
export function callsToStart(
  { calls, limits }: ExecutingState,
  isStartable: (call: Call) => boolean,
): readonly Call[] {
  const { counts, runningReads } = summaryOf(calls)
  if (counts.ready + counts.in_doubt + counts.to_retry === 0) return []
  let room = (limits.maxConcurrency ?? defaultLimits.maxConcurrency) - runningReads
  let isWriteOpen = false
  const turns = new ToolTurns(calls)
  const chosen: Call[] = []
  for (const call of calls) {
    const isNext = turns.isNext(call)
    if (call.effect === 'read') {
      if (room <= 0 || !isNext || !isStartable(call)) continue
      turns.start(call)
      chosen.push(call)
      room--
    } else if (!isWriteOpen && call.status !== 'settled') {
      isWriteOpen = true
      if (isNext && isStartable(call)) chosen.push(call)
    }
  }
  return chosen
}

/**
 * Whose turn it is among the calls of a reply, asked for one after the other in the order of the requests: of those that
 * share a `serial` key the first that has no result, of those of one tool as many as it runs at the same time.
 */
class ToolTurns {
  /** Keys of which an earlier call has no result. */
  readonly #taken = new Set<string>()
  /** Calls at work, by tool. */
  readonly #atWork = new Map<string, number>()

  constructor(calls: readonly Call[]) {
    for (const call of calls) if (call.status === 'started') this.start(call)
  }

  /** Whether a call need not wait for one before it. */
  isNext({ name, serial, maxConcurrency = Infinity, status }: Call): boolean {
    if (status === 'settled') return false
    const isFree = serial === undefined || !this.#taken.has(serial)
    if (serial !== undefined) this.#taken.add(serial)
    return isFree && (this.#atWork.get(name) ?? 0) < maxConcurrency
  }

  /** A call of the tool is at work, or is about to be. */
  start({ name, maxConcurrency }: Pick<Call, 'name' | 'maxConcurrency'>): void {
    if (maxConcurrency !== undefined) this.#atWork.set(name, (this.#atWork.get(name) ?? 0) + 1)
  }
}
