import { isDeltaSignal, type ArrivedDeltas, type Incoming } from '../../machine/decide/decide-deltas.ts'
import type { ReportedDelta } from '../../vocabulary/signals/signal-schema.ts'

/** A message that has arrived; `key` names it in the ledger's inbox, where it came from there. */
export interface Mail {
  readonly message: Incoming
  readonly key?: string
}

/** The attempt of a model call. */
export interface AttemptPlace {
  readonly turn: number
  readonly attempt: number
}

/** The kinds of mail that the writer distinguishes: a delta of a reply, the ending of a tool call, anything else. */
export type MailKind = 'delta' | 'ending' | 'other'

/** What the writer takes at once, and how much of it is of each kind. Deltas that share a mail count one by one. */
interface MailBatch {
  readonly mail: Mail[]
  readonly counts: Record<MailKind, number>
  count: number
  /** The last mail, if the next delta may join it. */
  open: OpenDeltas | undefined
}

interface OpenDeltas extends ArrivedDeltas {
  readonly texts: string[]
}

/** The most mails of one batch, and the most messages in them: deltas that share a mail are decided and recorded together. */
const MAX_MAILS = 2_000
const MAX_MESSAGES = 10_000

/** Awaiting it lets pending promises continue first. */
export const promiseTurn: Promise<void> = Promise.resolve()

/** If nothing arrives in so many turns of promises, whatever reports now is waiting for something outside of the process. */
export const QUIET_TURNS = 12

/**
 * The messages that have arrived for a run and that its writer has not taken yet. Posting never blocks, and never runs the code of
 * a tool or adapter. The writer takes one batch when it is ready, so that a flood is recorded and shown bit by bit.
 */
export class Mailbox {
  readonly #batches: MailBatch[] = []
  #isWoken = false
  #arrived: (() => void) | undefined
  /** How many messages were posted so far. */
  #posted = 0
  #listeners: (() => void)[] | undefined
  #fault: { readonly error: unknown } | undefined

  post(mail: Mail): void {
    add(mail, this.#openBatch())
    this.#posted++
    this.wake()
  }

  /** Posts a delta whose text is not empty. Its fields are copied, and neighbouring deltas of one part share a mail. */
  postDelta(delta: ReportedDelta, place: AttemptPlace): void {
    const batch = this.#openBatch()
    const { open } = batch
    if (open && isMoreOf(open, delta, place)) {
      open.texts.push(delta.text)
      batch.counts.delta++
      batch.count++
    } else {
      const message: OpenDeltas = { type: 'deltas', of: withoutText(delta, place), texts: [delta.text] }
      add({ message }, batch)
      batch.open = message
    }
    this.#posted++
    this.wake()
  }

  /** The batch that takes what arrives. */
  #openBatch(): MailBatch {
    const last = this.#batches[this.#batches.length - 1]
    if (last !== undefined && last.mail.length < MAX_MAILS && last.count < MAX_MESSAGES) return last
    const batch = emptyBatch()
    this.#batches.push(batch)
    return batch
  }

  /** Wakes the writer, though nothing was posted. */
  wake(): void {
    if (this.#arrived === undefined) this.#isWoken = true
    else {
      const arrived = this.#arrived
      this.#arrived = undefined
      arrived()
    }
    if (this.#listeners === undefined) return
    const listeners = this.#listeners
    this.#listeners = undefined
    for (const notify of listeners) notify()
  }

  /** Has `takeBatch` throw an error, once everything that has arrived before is taken. */
  fail(error: unknown): void {
    this.#fault ??= { error }
    this.wake()
  }

  /** Puts back what was taken, in front of what has arrived since: all of it is one batch, and is decided together. */
  putBack(mail: readonly Mail[]): void {
    const batch = emptyBatch()
    for (const each of [...mail, ...this.#batches.splice(0).flatMap((later) => later.mail)]) add(each, batch)
    if (batch.mail.length > 0) this.#batches.push(batch)
  }

  /** Returns one batch. `arrival` then waits for what comes later, unless more batches are there. */
  takeBatch(): readonly Mail[] {
    if (this.empty && this.#fault) throw this.#fault.error
    const batch = this.#batches.shift()
    this.#isWoken = !this.empty || this.#fault !== undefined
    return batch?.mail ?? []
  }

  /** Resolves when something was posted or the writer was woken since it took a batch, or since this resolved before. */
  arrival(): Promise<void> {
    if (!this.#isWoken) {
      return new Promise((resolve) => {
        this.#arrived = resolve
      })
    }
    this.#isWoken = false
    return promiseTurn
  }

  /**
   * Resolves when pending promises have brought everything that they bring before the process turns to its timers, files and
   * connections again. So what a model or a tool reports in one go shares a batch, and no time has to pass. If only a model call
   * is in flight, nothing follows its last signal.
   */
  async quiet(reporting: number = 0): Promise<void> {
    let posted = this.#posted
    for (let turns = 0; turns < QUIET_TURNS && this.#batches.length === 1; turns++) {
      if (reporting === 1 && this.#holdsLastWord()) return
      await promiseTurn
      if (posted !== this.#posted) [posted, turns] = [this.#posted, 0]
    }
  }

  #holdsLastWord(): boolean {
    const last = this.#batches.at(-1)?.mail.at(-1)?.message.type
    return last === 'model_finished' || last === 'model_failed'
  }

  /** Resolves when a message is posted or the writer is woken; `arrival` still resolves for that, too. */
  next(): Promise<void> {
    return new Promise((resolve) => void (this.#listeners ??= []).push(resolve))
  }

  get empty(): boolean {
    return this.#batches.length === 0
  }

  /** Whether there is mail of one kind only, and fewer messages than a number. */
  holdsOnly(kind: MailKind, below: number = Infinity): boolean {
    let count = 0
    for (const batch of this.#batches) {
      if (batch.counts[kind] < batch.count) return false
      count += batch.count
    }
    return !this.empty && count < below
  }
}

function emptyBatch(): MailBatch {
  return { mail: [], counts: { delta: 0, ending: 0, other: 0 }, count: 0, open: undefined }
}

function add(mail: Mail, batch: MailBatch): void {
  const { message } = mail
  const count = message.type === 'deltas' ? message.texts.length : 1
  batch.mail.push(mail)
  batch.open = undefined
  batch.counts[kindOf(message)] += count
  batch.count += count
}

function kindOf(message: Incoming): MailKind {
  if (message.type === 'deltas' || isDeltaSignal(message)) return 'delta'
  return message.type === 'tool_ended' ? 'ending' : 'other'
}

/** Whether a delta continues the part, of the same attempt, that others belong to. */
function isMoreOf({ of }: ArrivedDeltas, delta: ReportedDelta, { turn, attempt }: AttemptPlace): boolean {
  const isSamePart = of.type === delta.type && of.part === delta.part
  const isSameAttempt = of.turn === turn && of.attempt === attempt
  return isSamePart && isSameAttempt && (of.type !== 'model_tool_input' || of.name === nameOf(delta))
}

function nameOf(delta: ReportedDelta): string | undefined {
  return delta.type === 'model_tool_input' ? delta.name : undefined
}

/** Returns a copy of the fields that a delta has, and of no others. */
function withoutText(delta: ReportedDelta, { turn, attempt }: AttemptPlace): ArrivedDeltas['of'] {
  // Zero loses its sign.
  const part = delta.part + 0
  return delta.type === 'model_tool_input'
    ? { type: delta.type, part, name: delta.name, turn, attempt }
    : { type: delta.type, part, turn, attempt }
}
