import type { Command } from '../events/commands.ts'
import type { Signal } from '../events/signals.ts'

/** A message that has arrived; `key` is its name in the ledger's inbox, if it came from there. */
export interface Mail {
  readonly message: Command | Signal
  readonly key?: string
}

/** The most mails of one batch: a flood is recorded and shown in several appends. */
const MAX_MAILS = 2_000

/** The most UTF-16 code units of one joined delta: an event stays small enough to be read and sent at once. */
const MAX_DELTA_LENGTH = 65_536

/**
 * The messages that have arrived for a run and that its writer has not taken yet. Posting never blocks, and never runs the code of
 * a tool or adapter. The writer takes what has arrived when it is free. Neighbouring deltas of one part that wait together are joined:
 * where a vendor cut its chunks decides nothing, so one event records them. A tool request takes the place of its input, if all of that
 * still waits, as `JSON.stringify` writes it.
 */
export class Mailbox {
  #waiting: Mail[] = []
  #isPutBack = false
  #isWoken = false
  #arrived: (() => void) | undefined
  #fault: { readonly error: unknown } | undefined

  post(mail: Mail): void {
    const last = this.#waiting.at(-1)
    const joined = last && joinMails(last, mail)
    if (joined) this.#waiting.pop()
    this.#waiting.push(joined ?? mail)
    this.wake()
  }

  /** Wakes the writer, though nothing was posted. */
  wake(): void {
    if (this.#arrived === undefined) this.#isWoken = true
    else {
      this.#arrived()
      this.#arrived = undefined
    }
  }

  /** Makes `takeBatch` throw an error, once all earlier messages are taken. */
  fail(error: unknown): void {
    this.#fault ??= { error }
    this.wake()
  }

  /** Puts the taken messages back, before later arrivals: all of them are one batch, and are decided together. */
  putBack(mail: readonly Mail[]): void {
    this.#waiting = [...mail, ...this.#waiting]
    this.#isPutBack = true
  }

  /** Returns one batch. `arrival` then waits for later messages, unless there are more already. */
  takeBatch(): readonly Mail[] {
    if (this.empty && this.#fault) throw this.#fault.error
    const batch = this.#waiting
    this.#waiting = batch.length > MAX_MAILS && !this.#isPutBack ? batch.splice(MAX_MAILS) : []
    this.#isPutBack = false
    this.#isWoken = !this.empty || this.#fault !== undefined
    // Nobody waits any more: who waited beside something else has gone on with that.
    this.#arrived = undefined
    return batch
  }

  /** Resolves when something was posted or the writer was woken since it took a batch, or since this resolved before. */
  arrival(): Promise<void> {
    if (!this.#isWoken) {
      return new Promise((resolve) => {
        this.#arrived = resolve
      })
    }
    this.#isWoken = false
    return Promise.resolve()
  }

  get empty(): boolean {
    return this.#waiting.length === 0
  }

  get holdsOnlyDeltas(): boolean {
    return !this.empty && this.#waiting.every(({ message }) => isDelta(message))
  }
}

type DeltaSignal = Extract<Signal, { readonly type: 'model_text' | 'model_reasoning' | 'model_tool_input' }>

/**
 * True for a message that adds text to a part, and does nothing else. One that replaces what came before, or whose text differs from what
 * the model wrote, is not a plain delta.
 */
function isDelta(message: Command | Signal): message is DeltaSignal {
  if (message.type === 'model_tool_input') return true
  const isText = message.type === 'model_text' || message.type === 'model_reasoning'
  return isText && !message.replaces && message.written === undefined
}

/** Returns two mails about one part of one attempt as one; `undefined` if they are not that, or would be too long together. */
function joinMails({ message: first }: Mail, second: Mail): Mail | undefined {
  const { message } = second
  if (!isDelta(first) || (!isDelta(message) && message.type !== 'model_tool_request')) return undefined
  const isSamePart =
    first.part === message.part && first.turn === message.turn && first.attempt === message.attempt
  if (!isSamePart) return undefined
  if (message.type === 'model_tool_request') {
    // Of this text alone the estimate of its tokens is that of the request, so timing changes no number on record.
    const isWhole = first.type === 'model_tool_input' && first.text === JSON.stringify(message.call.input)
    return isWhole ? second : undefined
  }
  if (first.type !== message.type || first.text.length + message.text.length > MAX_DELTA_LENGTH)
    return undefined
  if (first.type === 'model_tool_input' && first.name !== (message as typeof first).name) return undefined
  return { message: { ...first, text: first.text + message.text } }
}
