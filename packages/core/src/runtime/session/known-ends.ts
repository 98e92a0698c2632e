import { messageAt, type History } from '../../machine/messages/history.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Ledger, RunRecord } from '../../ports/ledger.ts'

/** About how many characters of messages are kept. */
const MAX_CHARS = 4_000_000

/** What the state of a run takes beside its messages, in characters: this bounds the number of sessions. */
const CHARS_OF_STATE = 4_000

/** How the last run of a session ended, and about how much memory that takes. */
interface KnownEnd {
  readonly state: RunState
  readonly chars: number
}

/**
 * How the last runs of sessions ended that this process drove, so that the next run of a session need not read the run
 * before it. What is known of a run is used only where the ledger says that its record is still the same.
 */
export class KnownEnds {
  /** By session; the one that ended last is last. */
  readonly #ends = new Map<string, KnownEnd>()
  #chars = 0

  /** Takes the state in which a run has ended. */
  ended(state: RunState): void {
    const { sessionId } = state
    if (sessionId === undefined || state.phase !== 'done') return
    const before = this.#forget(sessionId)
    const chars = CHARS_OF_STATE + charsOf(state.history, before)
    this.#ends.set(sessionId, { state, chars })
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
}

/** About how many characters messages hold. Those that the run before it counted are not counted again. */
function charsOf(history: History, before: KnownEnd | undefined): number {
  const isLonger = before?.state.history.store === history.store
  let chars = isLonger ? before.chars - CHARS_OF_STATE : 0
  for (let index = isLonger ? before.state.history.length : 0; index < history.length; index++)
    chars += charsIn(messageAt(history, index))
  return chars
}

function charsIn(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  let chars = 1
  for (const field of Object.values(value)) chars += charsIn(field)
  return chars
}
