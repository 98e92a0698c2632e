import type { Ledger, RunRecord } from '../ledger/ledger.ts'
import { type History, messageAt } from '../machine/history.ts'
import type { RunState } from '../machine/state.ts'

/** About how many characters of states are kept. */
const MAX_CHARS = 4_000_000

/** The size of a state beside its counted texts, in characters: it bounds the number of sessions. */
const CHARS_OF_STATE = 4_000

/** How the last run of a session ended, and about how much memory that takes, in characters. */
interface KnownEnd {
  readonly state: RunState
  readonly historyChars: number
  readonly chars: number
}

/**
 * How the last runs of sessions ended that this process drove, so that the next run of a session need not read the run
 * before it. What is known of a run is used only where the ledger says that its record is still the same.
 */
export class KnownEnds {
  /** By session; the one that ended last is last. */
  readonly #ends = new Map<string, KnownEnd>()
  /** Definitions of agents that were counted: the runs of an agent share one, unless a run changed it. */
  readonly #counted = new WeakSet<object>()
  #chars = 0

  /** Takes the state in which a run has ended. One that is too large alone is not kept. */
  ended(state: RunState): void {
    const { sessionId } = state
    if (sessionId === undefined || state.phase !== 'done') return
    const historyChars = charsOfHistory(state.history, this.#forget(sessionId))
    const chars = CHARS_OF_STATE + historyChars + this.#charsBesideHistory(state)
    if (chars > MAX_CHARS) return
    this.#ends.set(sessionId, { state, historyChars, chars })
    this.#chars += chars
    for (const oldest of this.#ends.keys()) {
      if (this.#chars <= MAX_CHARS) break
      this.#forget(oldest)
    }
  }

  /**
   * The state in which the last run of a session ended; `undefined` where it has to be read: another process drove the run,
   * or something of it was removed since, or the ledger cannot tell.
   */
  async find({ runId, sessionId = '', head }: RunRecord, ledger: Ledger): Promise<RunState | undefined> {
    const state = this.#ends.get(sessionId)?.state
    if (state?.runId !== runId || state.seq !== head.seq) return undefined
    return (await ledger.isWhole?.(runId)) === true ? state : undefined
  }

  #forget(sessionId: string): KnownEnd | undefined {
    const end = this.#ends.get(sessionId)
    this.#chars -= end?.chars ?? 0
    this.#ends.delete(sessionId)
    return end
  }

  #charsBesideHistory(state: RunState): number {
    const { definition } = state
    let chars = this.#counted.has(definition) ? 0 : charsIn(definition)
    this.#counted.add(definition)
    for (const [field, value] of Object.entries(state))
      if (field !== 'history' && field !== 'definition') chars += charsIn(value)
    return chars
  }
}

/**
 * About how many characters messages hold, up to the most that is kept. Those that the run before it counted are not counted
 * again.
 */
function charsOfHistory(history: History, before: KnownEnd | undefined): number {
  const isLonger = before?.state.history.store === history.store
  let chars = isLonger ? before.historyChars : 0
  for (let at = isLonger ? before.state.history.length : 0; at < history.length && chars <= MAX_CHARS; at++)
    chars += charsIn(messageAt(history, at))
  return chars
}

function charsIn(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  let chars = 1
  for (const field of Object.values(value)) chars += charsIn(field)
  return chars
}
