import { isPiece, type ArrivedPieces, type Incoming } from '../../machine/decide/decide-pieces.ts'
import type { PieceSignal } from '../../vocabulary/signals/signal-schema.ts'

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

/** What the writer tells mail apart by: a piece of a reply, the ending of a call, anything else. */
export type MailKind = 'piece' | 'ending' | 'other'

/** What is taken at once, and how much of it is of each kind. Pieces that arrived together are one mail, and count one by one. */
interface Page {
  readonly mail: Mail[]
  readonly counts: Record<MailKind, number>
  count: number
  /** The pieces that the next one joins where it is of the same part: the last mail, where it may still grow. */
  open: OpenPieces | undefined
}

interface OpenPieces extends ArrivedPieces {
  readonly texts: string[]
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
  #isWoken = false
  #arrived: (() => void) | undefined
  /** How many messages were posted so far. */
  #posted = 0
  #listeners: (() => void)[] | undefined
  #fault: { readonly error: unknown } | undefined

  post(mail: Mail): void {
    add(mail, this.#openPage())
    this.#posted++
    this.wake()
  }

  /** Posts a piece of a reply that is not empty. Only its fields are kept, and those that follow each other share a mail. */
  postPiece(piece: PieceSignal, place: AttemptPlace): void {
    const page = this.#openPage()
    const { open } = page
    if (open && isMoreOf(open, piece, place)) {
      open.texts.push(piece.text)
      page.counts.piece++
      page.count++
    } else {
      const message: OpenPieces = { type: 'pieces', of: withoutText(piece, place), texts: [piece.text] }
      add({ message }, page)
      page.open = message
    }
    this.#posted++
    this.wake()
  }

  /** The page that takes what arrives. */
  #openPage(): Page {
    const last = this.#pages[this.#pages.length - 1]
    if (last !== undefined && last.count < MAX_PAGE) return last
    const page = emptyPage()
    this.#pages.push(page)
    return page
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

  /** An error that no message can tell: `takePage` throws it once what has arrived before is taken. */
  fail(error: unknown): void {
    this.#fault ??= { error }
    this.wake()
  }

  /** Puts back what was taken, in front of what has arrived since: all of it is one page, so that it is decided together. */
  putBack(mail: readonly Mail[]): void {
    const page = emptyPage()
    for (const each of [...mail, ...this.#pages.splice(0).flatMap((later) => later.mail)]) add(each, page)
    if (page.mail.length > 0) this.#pages.push(page)
  }

  /** Takes one page, and all that woke the writer so far. Where more is there, the writer does not wait before it takes that too. */
  takePage(): readonly Mail[] {
    if (this.empty && this.#fault) throw this.#fault.error
    const page = this.#pages.shift()
    this.#isWoken = !this.empty || this.#fault !== undefined
    return page?.mail ?? []
  }

  /** Resolves when something was posted or the writer was woken since it took a page, or since this resolved before. */
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
   * Resolves when what arrives at once has arrived: with what promises bring before the process turns to its timers, files
   * and connections again. So what a model or a tool reports in one go shares a page, and waits for no time to pass. What the
   * only one that reports has said last, nothing follows.
   */
  async quiet(reporting: number = 0): Promise<void> {
    let posted = this.#posted
    for (let turns = 0; turns < QUIET_TURNS && this.#pages.length === 1; turns++) {
      if (reporting === 1 && this.#holdsLastWord()) return
      await promiseTurn
      if (posted !== this.#posted) [posted, turns] = [this.#posted, 0]
    }
  }

  #holdsLastWord(): boolean {
    const last = this.#pages.at(-1)?.mail.at(-1)?.message.type
    return last === 'model_finished' || last === 'model_failed'
  }

  /** Resolves when the next thing is posted or the writer is woken, which `arrival` still returns for. */
  next(): Promise<void> {
    return new Promise((resolve) => void (this.#listeners ??= []).push(resolve))
  }

  get empty(): boolean {
    return this.#pages.length === 0
  }

  /** Whether there is mail of a kind, less than a number, and no other. */
  holdsOnly(kind: MailKind, below: number = Infinity): boolean {
    let count = 0
    for (const page of this.#pages) {
      if (page.counts[kind] < page.count) return false
      count += page.count
    }
    return !this.empty && count < below
  }
}

function emptyPage(): Page {
  return { mail: [], counts: { piece: 0, ending: 0, other: 0 }, count: 0, open: undefined }
}

function add(mail: Mail, page: Page): void {
  const { message } = mail
  const count = message.type === 'pieces' ? message.texts.length : 1
  page.mail.push(mail)
  page.open = undefined
  page.counts[kindOf(message)] += count
  page.count += count
}

function kindOf(message: Incoming): MailKind {
  if (message.type === 'pieces' || isPiece(message)) return 'piece'
  return message.type === 'tool_ended' ? 'ending' : 'other'
}

/** Whether a piece is one more of the part of those that came before it. */
function isMoreOf({ of }: ArrivedPieces, piece: PieceSignal, { turn, attempt }: AttemptPlace): boolean {
  const isSamePart = of.type === piece.type && of.part === piece.part
  const isSameAttempt = of.turn === turn && of.attempt === attempt
  return isSamePart && isSameAttempt && (of.type !== 'model_tool_input' || of.name === nameOf(piece))
}

function nameOf(piece: PieceSignal): string | undefined {
  return piece.type === 'model_tool_input' ? piece.name : undefined
}

/** The fields that a piece has, and no others. */
function withoutText(piece: PieceSignal, { turn, attempt }: AttemptPlace): ArrivedPieces['of'] {
  // Zero loses its sign.
  const part = piece.part + 0
  return piece.type === 'model_tool_input'
    ? { type: piece.type, part, name: piece.name, turn, attempt }
    : { type: piece.type, part, turn, attempt }
}
