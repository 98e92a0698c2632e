import type { Command } from '../../vocabulary/events/command.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { isPiece } from '../../machine/decide/decide-pieces.ts'
import { Wakeup } from '../../ports/wakeup.ts'

/** A message that has arrived; `key` names it in the ledger's inbox, where it came from there. */
export interface Mail {
  readonly message: Command | Signal
  readonly key?: string
}

/** What the writer tells mail apart by: a piece of a reply, the ending of a call, anything else. */
export type MailKind = 'piece' | 'ending' | 'other'

/** The most messages of one page. */
const MAX_PAGE = 2_000

/** To await it lets the promises before it have their turn. */
export const promiseTurn: Promise<void> = Promise.resolve()

/** When nothing has arrived in so many turns of promises, what is reported now waits for something outside. */
export const QUIET_TURNS = 12

/**
 * What has arrived for a run and was not looked at yet. Posting never blocks and never runs the code of a tool or adapter; the run's
 * writer takes it page by page, when it is ready: a flood is recorded and shown piece by piece.
 */
export class Mailbox {
  readonly #pages: Mail[][] = []
  readonly #wakeup = new Wakeup()
  /** How many messages of each kind are there. */
  readonly #counts: Record<MailKind, number> = { piece: 0, ending: 0, other: 0 }
  /** How many messages were posted so far. */
  #posted = 0
  #listeners: (() => void)[] = []
  #fault: { readonly error: unknown } | undefined

  post(mail: Mail): void {
    const last = this.#pages.at(-1)
    if (last && last.length < MAX_PAGE) last.push(mail)
    else this.#pages.push([mail])
    this.#counts[kindOf(mail)]++
    this.#posted++
    this.wake()
  }

  /** Wakes the writer, though nothing was posted. */
  wake(): void {
    this.#wakeup.wake()
    if (this.#listeners.length === 0) return
    for (const notify of this.#listeners.splice(0)) notify()
  }

  /** An error that no message can tell: `takePage` throws it once what has arrived before is taken. */
  fail(error: unknown): void {
    this.#fault ??= { error }
    this.wake()
  }

  /** Puts back what was taken, in front of what has arrived since: all of it is one page, so that it is decided together. */
  putBack(mail: readonly Mail[]): void {
    const page = [...mail, ...this.#pages.splice(0).flat()]
    if (page.length > 0) this.#pages.push(page)
    for (const each of mail) this.#counts[kindOf(each)]++
  }

  /** Takes one page. Where more is there, the writer does not wait before it takes that too. */
  takePage(): readonly Mail[] {
    if (this.empty && this.#fault) throw this.#fault.error
    const page = this.#pages.shift() ?? []
    for (const mail of page) this.#counts[kindOf(mail)]--
    if (!this.empty || this.#fault) this.#wakeup.wake()
    return page
  }

  /** Resolves when something was posted or the writer was woken since the last time. */
  arrival(): Promise<void> {
    return this.#wakeup.wait()
  }

  /**
   * Resolves when what arrives at once has arrived: with what promises bring before the process turns to its timers, files
   * and connections again. So what a model or a tool reports in one go shares a page, and waits for no time to pass.
   */
  async quiet(): Promise<void> {
    let posted = this.#posted
    for (let turns = 0; turns < QUIET_TURNS && this.#pages.length === 1; turns++) {
      await promiseTurn
      if (posted !== this.#posted) [posted, turns] = [this.#posted, 0]
    }
  }

  /** Resolves when the next thing is posted or the writer is woken, which `arrival` still returns for. */
  next(): Promise<void> {
    return new Promise((resolve) => void this.#listeners.push(resolve))
  }

  get empty(): boolean {
    return this.#pages.length === 0
  }

  /** Whether there is mail of a kind, less than a number, and no other. */
  holdsOnly(kind: MailKind, below: number = Infinity): boolean {
    const { piece, ending, other } = this.#counts
    const count = this.#counts[kind]
    return !this.empty && count === piece + ending + other && count < below
  }
}

function kindOf({ message }: Mail): MailKind {
  if (isPiece(message)) return 'piece'
  return message.type === 'tool_ended' ? 'ending' : 'other'
}
