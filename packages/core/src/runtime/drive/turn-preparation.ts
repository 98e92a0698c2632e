import { ConfigurationError } from '../../values/errors.ts'
import { historyDigest } from '../../machine/history.ts'
import type { TurnChange } from '../../machine/rules.ts'
import type { Cancel, Clock } from '../../values/host.ts'
import { isThenable } from '../../values/option.ts'
import { digestOf } from '../../values/digest.ts'
import { textOfError } from '../../values/text.ts'
import type { AskedTurn, Preparing } from '../definition/run-context.ts'

/** How long an agent may prepare a turn where it does not say. */
const PREPARE_MS = 60_000

/** A turn whose preparation is waited for, or is there. */
interface AskedOnce {
  readonly key: string
  answer?: { readonly change: TurnChange | undefined } | { readonly error: ConfigurationError }
}

/** What may let the run continue. */
interface Preparation {
  readonly clock: Clock
  readonly wake: () => void
}

/**
 * Asks agents to prepare turns, and waits for those that answer later. A turn whose request has changed meanwhile, since
 * the user said more, is prepared anew: the answer of before is of another request.
 */
export class TurnPreparation {
  readonly #options: Preparation
  #asked: AskedOnce | undefined
  #stopTimer: Cancel | undefined

  constructor(options: Preparation) {
    this.#options = options
  }

  readonly prepare: Preparing = (turn, prepare) => {
    const key = keyOf(turn)
    if (this.#asked?.key !== key) {
      this.stop()
      const answer = this.#ask(turn, prepare)
      if (!isThenable(answer)) return answer
      this.#await(key, turn, answer)
    }
    const { answer } = this.#asked ?? {}
    if (answer === undefined) return 'pending'
    if ('error' in answer) throw answer.error
    return answer.change
  }

  #ask(turn: AskedTurn, prepare: Parameters<Preparing>[1]): ReturnType<Parameters<Preparing>[1]> {
    try {
      return prepare()
    } catch (error) {
      // The runtime's own checks say already what to change.
      throw error instanceof ConfigurationError ? error : failure(turn, ...failed(error))
    }
  }

  /** Ignores an answer that comes from here on. */
  stop(): void {
    this.#stopTimer?.()
    this.#asked = undefined
  }

  #await(key: string, turn: AskedTurn, answer: PromiseLike<TurnChange | undefined>): void {
    const { clock, wake } = this.#options
    const asked: AskedOnce = { key }
    this.#asked = asked
    const settle = (settled: NonNullable<AskedOnce['answer']>): void => {
      if (this.#asked !== asked || asked.answer) return
      asked.answer = settled
      this.#stopTimer?.()
      wake()
    }
    const fail = (what: string, cause?: unknown): void => settle({ error: failure(turn, what, cause) })
    const { prepareMs = PREPARE_MS } = turn.agent.timeouts
    this.#stopTimer = clock.schedule(prepareMs, () => fail(`did not answer within ${prepareMs} ms`))
    answer.then(
      (change) => settle({ change }),
      (error: unknown) => fail(...failed(error)),
    )
  }
}

/** Why a turn could not be prepared. */
function failure({ agent }: AskedTurn, what: string, cause?: unknown): ConfigurationError {
  return new ConfigurationError(`prepareTurn of the agent ${agent.name} ${what}. No model was called.`, {
    cause,
  })
}

function failed(error: unknown): readonly [what: string, cause: unknown] {
  return [`failed: ${textOfError(error)}`, error]
}

/** What names a request before its turn is prepared. */
function keyOf({ agent, state, request }: AskedTurn): string {
  const { turn, history, definition } = state
  const { messages: _counted, ...rest } = request
  const place = { agent: agent.name, turn, definition: definition.digest, history: historyDigest(history) }
  return digestOf({ ...place, request: rest })
}
