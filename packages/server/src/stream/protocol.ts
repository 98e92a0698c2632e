import type { Ledger, RunId, RunState, RuntimeEvent } from '@tallystick/core'
import {
  listCallsAwaitingChild,
  caughtUp,
  followChanges,
  omitUndefined,
  readResultWithChildren,
} from '@tallystick/core/internal'
import { RefusedRequestError } from '../http/problem.ts'
import { follow, idle, readChunks, streamChunks, streamHeaders } from './follow.ts'
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
  readonly format: (out: Out) => string
  /** The text at the end of the stream. */
  readonly ending: string
}

/** Streams a run until it ends, waits for a command, or answers a message that belongs to another stream. */
export function streamRun<Out>(
  served: FollowedLedger,
  run: FollowedRun,
  protocol: RunProtocol<Out>,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const stream = streamChunks((signal) => readProtocol(served, run, protocol, signal), served.stream)
  return new Response(stream, { headers: { ...streamHeaders, ...headers } })
}

async function* readProtocol<Out>(
  served: FollowedLedger,
  run: FollowedRun,
  protocol: RunProtocol<Out>,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  const reader = new RunReader(served.ledger, run, protocol.newTable())
  const isLast = (): boolean => reader.hasBegun || reader.isWaiting || run.next === undefined
  const format = (outs: readonly Out[]): string =>
    outs.map(protocol.format).join('') + (reader.isOver && isLast() ? protocol.ending : '')
  const followed = {
    changes: followChanges(served.reads.forReader(), run.runId, { after: 0 }),
    format: (event: RuntimeEvent) => format(reader.read(event)),
    isLast: () => reader.isOver,
    endAtWait: async () => {
      const last = await reader.endAtWait()
      return last && format(last)
    },
  }
  yield* readChunks(followed, served.stream, signal)
  if (!reader.isOver || isLast()) return
  const following = await run.next?.catch(() => undefined)
  if (following) yield* readProtocol(served, following, protocol, signal)
}

/**
 * Resolves with the last output of a protocol for a run, when the run ends or waits for a command; `undefined` if the
 * server stops or the client leaves before that: then `throwStopping` answers.
 */
export async function awaitAnswer<Out>(
  { ledger, reads, stream }: FollowedLedger,
  run: FollowedRun,
  table: MoveTable<Out>,
  signal: AbortSignal,
): Promise<Out | undefined> {
  const reader = new RunReader(ledger, run, table)
  const changes = followChanges(reads.forReader(), run.runId, { after: 0 })
  for await (const event of follow(changes, stream, signal)) {
    const isPause = event === caughtUp || event === idle
    const outs = isPause ? await reader.endAtWait() : reader.read(event)
    if (isPause ? outs !== undefined : event.type === 'run_finished') return outs?.at(-1)
  }
  return undefined
}

/** The server stops while a client waits. The run is on record and continues elsewhere. */
export function throwStopping({ runId }: FollowedRun): never {
  throw new RefusedRequestError(
    503,
    'run_continues',
    `This process stops, and run ${runId} continues in another one. GET /runs/${runId}/result there gives its answer.`,
  )
}
