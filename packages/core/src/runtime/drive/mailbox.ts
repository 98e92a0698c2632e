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

/** What is taken at once, and how much of it is of each kind. */
interface Page {
  readonly mail: Mail[]
  readonly counts: Record<MailKind, number>
}

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
  readonly #pages: Page[] = []
  readonly #wakeup = new Wakeup()
  /** How many messages were posted so far. */
  #posted = 0
  #listeners: (() => void)[] = []
  #fault: { readonly error: unknown } | undefined

  post(mail: Mail): void {
    let page = this.#pages[this.#pages.length - 1]
    if (page === undefined || page.mail.length >= MAX_PAGE) {
      page = emptyPage()
      this.#pages.push(page)
    }
    page.mail.push(mail)
    page.counts[kindOf(mail)]++
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
    const page = emptyPage()
    for (const each of [...mail, ...this.#pages.splice(0).flatMap((later) => later.mail)]) {
      page.mail.push(each)
      page.counts[kindOf(each)]++
    }
    if (page.mail.length > 0) this.#pages.push(page)
  }

  /** Takes one page. Where more is there, the writer does not wait before it takes that too. */
  takePage(): readonly Mail[] {
    if (this.empty && this.#fault) throw this.#fault.error
    const page = this.#pages.shift()
    if (!this.empty || this.#fault) this.#wakeup.wake()
    return page?.mail ?? []
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
    let count = 0
    for (const { mail, counts } of this.#pages) {
      if (counts[kind] < mail.length) return false
      count += mail.length
    }
    return !this.empty && count < below
  }
}

function emptyPage(): Page {
  return { mail: [], counts: { piece: 0, ending: 0, other: 0 } }
}

function kindOf({ message }: Mail): MailKind {
  if (isPiece(message)) return 'piece'
  return message.type === 'tool_ended' ? 'ending' : 'other'
}
