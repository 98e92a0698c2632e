import type { Ledger, RunId, RunState, RuntimeEvent } from '@tallystick/core'
import {
  listCallsAwaitingChild,
  caughtUp,
  changesOf,
  omitUndefined,
  readResultWithChildren,
} from '@tallystick/core/internal'
import { streamChanges, type StreamHost } from './followed-stream.ts'
import { type MoveTable, mapMove, type RunMove, RunMoves, type RunWaits } from './run-moves.ts'
import type { FollowedLedger } from './shared-reads.ts'

/** The place in a run where a stream begins. */
type RunPlace =
  /** After an event; 0 for all of the run. */
  | { readonly after: number }
  /** At the message of the user with this id. */
  | { readonly message: string }
  /** At an answer of the run, counted from 1. */
  | { readonly answer: number }

/**
 * Reads the events of a run, from its first, and returns the output of a protocol from a place on. It also reads the events
 * before that place, so that the protocol knows the output of other streams.
 */
export class RunReader<Out> {
  readonly #moves = new RunMoves()
  readonly #ledger: Ledger
  readonly #place: RunPlace
  readonly #table: MoveTable<Out>
  /** The answer that the stream is about, once it has begun. */
  #answer: number | undefined
  /** True if nothing follows: the run has ended, waits, or now answers a later message. */
  isOver = false
  /** True if it is over because the run waits for a command. */
  isWaiting = false

  constructor(ledger: Ledger, place: RunPlace, table: MoveTable<Out>) {
    this.#ledger = ledger
    this.#place = place
    this.#table = table
    if ('after' in place && place.after === 0) this.#answer = 1
  }

  /** True if the place was reached. */
  get hasBegun(): boolean {
    return this.#answer !== undefined
  }

  /** Returns the output for the next event. */
  read(event: RuntimeEvent): readonly Out[] {
    const opening = 'after' in this.#place && event.seq > this.#place.after ? this.#opening() : []
    const moves = this.#moves.next(event)
    const outs = this.#outs(moves)
    this.isOver = event.type === 'run_finished'
    if (this.#answer === undefined) return this.#hasReached(moves) ? this.#opening() : []
    if (this.#moves.answer === this.#answer || this.#table.answer_ended === null) return [...opening, ...outs]
    this.isOver = true
    const { state } = this.#moves
    const end = state && { type: 'answer_ended' as const, state, answer: this.#answer }
    return [...opening, ...outs, ...this.#outs(end ? [end] : [])]
  }

  /** Returns the last output after the events so far, if the run waits for a command there. */
  async endAtWait(): Promise<readonly Out[] | undefined> {
    const { state, isWaiting } = this.#moves
    if (state === undefined || !isWaiting) return undefined
    const waits = await readWaits(this.#ledger, state)
    const isHeld = waits.approvals.length > 0 || waits.deferred.length > 0 || waits.limit !== undefined
    if (!isHeld) return undefined
    this.isOver = true
    this.isWaiting = true
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

  /** Returns the first output of a stream that continues an earlier one. */
  #opening(): readonly Out[] {
    if (this.hasBegun) return []
    this.#answer = this.#moves.answer
    return this.#outs(this.#moves.reopen())
  }

  #outs(moves: readonly RunMove[]): readonly Out[] {
    return moves.flatMap((move) => mapMove(this.#table, move))
  }
}

/** Reads what a run waits for: nothing while a child run is under way. */
export async function readWaits(ledger: Ledger, state: RunState): Promise<RunWaits> {
  const { pendingApprovals: approvals, deferredCalls, limit } = await readResultWithChildren(state, ledger)
  const working = new Set<string>(listCallsAwaitingChild(state).map(({ toolCallId }) => toolCallId))
  const deferred = deferredCalls.filter(({ toolCallId }) => !working.has(toolCallId))
  return { approvals, deferred, ...omitUndefined({ limit }) }
}

/** A run, and the place from which it is followed. */
export type FollowedRun = RunPlace & {
  readonly runId: RunId
  /** The run to follow instead, if this one ends before its place. */
  readonly next?: Promise<FollowedRun | undefined>
}

/** A protocol over server-sent events. */
export interface RunProtocol<Out> {
  /** Makes the table of one stream, which may have state. */
  readonly newTable: () => MoveTable<Out>
  readonly textOf: (out: Out) => string
  /** The text at the end of the stream. */
  readonly ending: string
}

/** Streams a run until it ends, waits for a command, or answers a message that belongs to another stream. */
export function streamProtocol<Out>(
  served: FollowedLedger,
  run: FollowedRun,
  protocol: RunProtocol<Out>,
  host: StreamHost,
): ReadableStream<Uint8Array> {
  const reader = new RunReader(served.ledger, run, protocol.newTable())
  const textOf = (outs: readonly Out[]): string =>
    outs.map(protocol.textOf).join('') + (reader.isOver && isLast() ? protocol.ending : '')
  const isLast = (): boolean => reader.hasBegun || reader.isWaiting || run.next === undefined
  const stream = streamChanges<RuntimeEvent>(
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
  return concatStreams(stream, async () => {
    if (!reader.isOver || isLast()) return undefined
    const following = await next.catch(() => undefined)
    return following && streamProtocol(served, following, protocol, host)
  })
}

/** Joins a stream and the one that follows it. */
function concatStreams(
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
 * Resolves with the last output of a protocol for a run, when the run ends or waits for a command; `undefined` if the
 * server stops before that.
 */
export async function awaitAnswer<Out>(
  { ledger, reads }: FollowedLedger,
  run: FollowedRun,
  table: MoveTable<Out>,
  { clock, heartbeatMs, stopping, signal }: StreamHost & { readonly signal: AbortSignal },
): Promise<Out | undefined> {
  const reader = new RunReader(ledger, run, table)
  const changes = changesOf(reads.forReader(), run.runId, { after: 0 })
  const end = (): void => void changes.return()
  // Checked at intervals: what the run waits for can be recorded in a child run.
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
