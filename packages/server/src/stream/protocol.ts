import type { Ledger, RunId, RunState, RuntimeEvent } from '@tallystick/core'
import { listCallsAwaitingChild, omitUndefined, readResultWithChildren } from '@tallystick/core/internal'
import { caughtUp, changesOf } from '@tallystick/core/store-kit'
import { followedStream, type StreamHost } from './followed-stream.ts'
import { type MoveTable, outOf, type RunMove, RunMoves, type RunWaits } from './run-moves.ts'
import type { FollowedLedger } from './shared-reads.ts'

/** Where a stream begins in a run. */
type RunPlace =
  /** After an event; 0 for all of the run. */
  | { readonly after: number }
  /** Where the model is shown a message of the user. */
  | { readonly message: string }
  /** Where an answer of the run begins, counted from 1. */
  | { readonly answer: number }

/**
 * Reads the events of a run, from its first, and returns what a protocol sends from a place on. It reads the events
 * before that place, too, so that the protocol knows what other streams have sent.
 */
export class RunReader<Out> {
  readonly #moves = new RunMoves()
  readonly #ledger: Ledger
  readonly #place: RunPlace
  readonly #table: MoveTable<Out>
  /** The answer that the stream is about, once it has begun. */
  #answer: number | undefined
  #isOver = false
  #isWaiting = false

  constructor(ledger: Ledger, place: RunPlace, table: MoveTable<Out>) {
    this.#ledger = ledger
    this.#place = place
    this.#table = table
    if ('after' in place && place.after === 0) this.#answer = 1
  }

  /** Whether its place was reached. */
  get hasBegun(): boolean {
    return this.#answer !== undefined
  }

  /** Whether nothing follows: the run has ended, or answers a later message now. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether it has ended because the run waits for a command. */
  get isWaiting(): boolean {
    return this.#isWaiting
  }

  /** Returns what the next event adds. */
  read(event: RuntimeEvent): readonly Out[] {
    const opening = 'after' in this.#place && event.seq > this.#place.after ? this.#opening() : []
    const moves = this.#moves.next(event)
    const outs = this.#outs(moves)
    this.#isOver = event.type === 'run_finished'
    if (this.#answer === undefined) return this.#hasReached(moves) ? this.#opening() : []
    if (this.#moves.answer === this.#answer || this.#table.answer_ended === undefined)
      return [...opening, ...outs]
    this.#isOver = true
    return [...opening, ...outs, ...this.#ofState((state) => this.#endOfAnswer(state))]
  }

  /** Returns what comes last after the events so far, if the run waits for a command there. */
  async endAtWait(): Promise<readonly Out[] | undefined> {
    const { state, isWaiting } = this.#moves
    if (state === undefined || !isWaiting) return undefined
    const waits = await waitsOf(this.#ledger, state)
    const isHeld = waits.approvals.length > 0 || waits.deferred.length > 0 || waits.limit !== undefined
    if (!isHeld) return undefined
    this.#isOver = true
    this.#isWaiting = true
    if ('message' in this.#place && !this.hasBegun)
      return this.#outs([{ type: 'message_waits', state, waits }])
    return [...this.#opening(), ...this.#outs(this.#moves.movesAtWait(waits))]
  }

  #hasReached(moves: readonly RunMove[]): boolean {
    const place = this.#place
    if ('answer' in place) return this.#moves.answer >= place.answer
    if (!('message' in place)) return false
    return moves.some((move) => move.type === 'input_taken' && move.messageId === place.message)
  }

  /** Returns what a stream begins with if it continues an earlier one. */
  #opening(): readonly Out[] {
    if (this.hasBegun) return []
    this.#answer = this.#moves.answer
    return this.#outs(this.#moves.reopen())
  }

  #endOfAnswer(state: RunState): RunMove {
    return { type: 'answer_ended', state, answer: this.#answer ?? 1 }
  }

  #ofState(moveOf: (state: RunState) => RunMove): readonly Out[] {
    const { state } = this.#moves
    return state ? this.#outs([moveOf(state)]) : []
  }

  #outs(moves: readonly RunMove[]): readonly Out[] {
    return moves.flatMap((move) => outOf(this.#table, move))
  }
}

/** Returns what a run waits for: nothing while a child run is under way. */
export async function waitsOf(ledger: Ledger, state: RunState): Promise<RunWaits> {
  const { pendingApprovals: approvals, deferredCalls, limit } = await readResultWithChildren(state, ledger)
  const working = new Set<string>(listCallsAwaitingChild(state).map(({ toolCallId }) => toolCallId))
  const deferred = deferredCalls.filter(({ toolCallId }) => !working.has(toolCallId))
  return { approvals, deferred, ...omitUndefined({ limit }) }
}

/** A run, and the place in it from which it is followed. */
export type FollowedRun = RunPlace & {
  readonly runId: RunId
  /** The run that is followed instead, if this one ends before its place comes. */
  readonly next?: Promise<FollowedRun | undefined>
}

/** How a protocol puts a run into a stream of server-sent events. */
export interface RunProtocol<Out> {
  /** Makes the table for one stream; it may remember what it has sent. */
  readonly newTable: () => MoveTable<Out>
  readonly textOf: (out: Out) => string
  /** The text at the end of the stream. */
  readonly ending: string
}

/** A stream of a run until it ends, waits for a command, or answers a message that is not of this stream. */
export function protocolStream<Out>(
  served: FollowedLedger,
  run: FollowedRun,
  protocol: RunProtocol<Out>,
  host: StreamHost,
): ReadableStream<Uint8Array> {
  const reader = new RunReader(served.ledger, run, protocol.newTable())
  const textOf = (outs: readonly Out[]): string =>
    outs.map(protocol.textOf).join('') + (reader.isOver && isLast() ? protocol.ending : '')
  const isLast = (): boolean => reader.hasBegun || reader.isWaiting || run.next === undefined
  const stream = followedStream<RuntimeEvent>(
    {
      changes: changesOf(served.reads.forReader(), run.runId, { after: 0 }),
      textOf: (event) => textOf(reader.read(event)),
      isLast: () => reader.isOver,
      endAtWait: async () => {
        const last = await reader.endAtWait()
        return last && textOf(last)
      },
    },
    host,
  )
  if (run.next === undefined) return stream
  const { next } = run
  return continued(stream, async () => {
    if (!reader.isOver || isLast()) return undefined
    const following = await next.catch(() => undefined)
    return following && protocolStream(served, following, protocol, host)
  })
}

/** A stream, and the one that follows it. */
function continued(
  first: ReadableStream<Uint8Array>,
  then: () => Promise<ReadableStream<Uint8Array> | undefined>,
): ReadableStream<Uint8Array> {
  let reader = first.getReader()
  let isSecond = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          const second = isSecond ? undefined : await then()
          if (second === undefined) return controller.close()
          isSecond = true
          reader = second.getReader()
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/**
 * Resolves with the last item that a protocol sends for a run, when the run ends or waits for a command; `undefined` if
 * the server stops before that.
 */
export async function protocolAnswer<Out>(
  { ledger, reads }: FollowedLedger,
  run: FollowedRun,
  table: MoveTable<Out>,
  { clock, heartbeatMs, stopping, signal }: StreamHost & { readonly signal: AbortSignal },
): Promise<Out | undefined> {
  const reader = new RunReader(ledger, run, table)
  const changes = changesOf(reads.forReader(), run.runId, { after: 0 })
  const end = (): void => void changes.return()
  // Asked again now and then: what the run waits for can be recorded by another one.
  const look = (): void => {
    changes.wake()
    stopTimer = clock.schedule(heartbeatMs, look)
  }
  let stopTimer = clock.schedule(heartbeatMs, look)
  stopping.addEventListener('abort', end)
  signal.addEventListener('abort', end)
  try {
    for await (const event of changes) {
      const outs = event === caughtUp ? await reader.endAtWait() : reader.read(event)
      if (event === caughtUp ? outs !== undefined : event.type === 'run_finished') return outs?.at(-1)
    }
    return undefined
  } finally {
    stopTimer()
    stopping.removeEventListener('abort', end)
    signal.removeEventListener('abort', end)
  }
}
