import type { Call } from '../state/state.ts'

/**
 * Whose turn it is among the calls of a reply, asked for one after the other in the order of the requests: of those that
 * share a `serial` key the first that has no result, of those of one tool as many as it runs at the same time.
 */
export class ToolTurns {
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
