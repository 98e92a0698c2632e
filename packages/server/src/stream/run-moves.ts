import type { PendingApproval, RunState, RuntimeEvent, Usage } from '@tallystick/core'
import {
  type DeferredCall,
  nextShownText,
  noText,
  omitUndefined,
  option,
  requireOptions,
  type ShownText,
} from '@tallystick/core/internal'
import { evolve, isSuspended } from '@tallystick/core/machine'
import type {
  EventOf,
  FinishReason,
  JsonObject,
  LimitName,
  Outcome,
  ResultPart,
  UserPart,
} from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'

/** What a run does, in the terms of a chat. Every protocol is made from these moves, so that all show the same text. */
export type RunMove =
  | {
      readonly type: 'run_started'
      readonly runId: string
      readonly agent: string
      readonly sessionId?: string
      readonly parentRunId?: string
      /** Milliseconds since 1970 UTC. */
      readonly at: number
    }
  /**
   * The model is shown a message of the user: the first of the run, or one that came meanwhile. What follows answers it:
   * `answer` counts the answers of the run from 1, and messages that are shown together have one.
   */
  | {
      readonly type: 'input_taken'
      readonly messageId: string
      readonly parts: readonly UserPart[]
      readonly answer: number
    }
  /** A message of the user came, and the run ended without showing it. */
  | {
      readonly type: 'input_dropped'
      readonly messageId: string
      readonly parts: readonly UserPart[]
      readonly why?: string
    }
  | { readonly type: 'step_started' }
  /** A part of the reply begins, and has to end before another one begins. */
  | { readonly type: 'part_started'; readonly kind: 'text' | 'reasoning'; readonly partId: string }
  | {
      readonly type: 'part_added'
      readonly kind: 'text' | 'reasoning'
      readonly partId: string
      readonly text: string
    }
  | { readonly type: 'part_ended'; readonly kind: 'text' | 'reasoning'; readonly partId: string }
  | { readonly type: 'call_started'; readonly toolCallId: string; readonly name: string }
  | { readonly type: 'call_input_added'; readonly toolCallId: string; readonly text: string }
  | {
      readonly type: 'call_requested'
      readonly toolCallId: string
      readonly name: string
      readonly input: JsonObject
    }
  /**
   * Everything shown in this step is void: its attempt failed, or its answer was replaced. Moves that are still valid
   * follow again.
   */
  | { readonly type: 'step_withdrawn' }
  | {
      readonly type: 'approval_requested'
      readonly toolCallId: string
      readonly attempt: number
      readonly inputDigest: string
      readonly reason?: string
    }
  | {
      readonly type: 'approval_decided'
      readonly toolCallId: string
      readonly attempt: number
      readonly inputDigest: string
      readonly approved: boolean
      readonly reason?: string
    }
  | { readonly type: 'call_progressed'; readonly toolCallId: string; readonly data: unknown }
  | {
      readonly type: 'call_ended'
      readonly toolCallId: string
      readonly name: string
      readonly outcome: Outcome
      readonly content: readonly ResultPart[]
    }
  | { readonly type: 'step_ended' }
  /** A stream begins that continues the run after another one. */
  | { readonly type: 'run_reopened'; readonly state: RunState; readonly answer: number }
  /** A stream ends, since what follows answers a later message. */
  | { readonly type: 'answer_ended'; readonly state: RunState; readonly answer: number }
  /** A stream ends, since the run waits for a command before it shows the message that the stream is about. */
  | { readonly type: 'message_waits'; readonly state: RunState; readonly waits: RunWaits }
  /** A stream ends, since the run waits for a command. */
  | { readonly type: 'run_waits'; readonly state: RunState; readonly waits: RunWaits }
  | {
      readonly type: 'run_finished'
      readonly runId: string
      readonly at: number
      readonly reason: FinishReason
      readonly detail?: string
      readonly text: string
      readonly usage: Usage
      readonly costUsd?: number
    }

/** What a run and its child runs wait for. */
export interface RunWaits {
  readonly approvals: readonly PendingApproval[]
  /** Calls that the caller or another system carries out. */
  readonly deferred: readonly DeferredCall[]
  /** The limit that has to be raised. */
  readonly limit?: LimitName
}

/** The move of a type. */
export type MoveOf<T extends RunMove['type']> = Extract<RunMove, { readonly type: T }>

/**
 * Maps moves to a protocol; a move that it does not have adds nothing. Where it has `answer_ended`, each answer of a run is
 * a message of its own, and a stream ends with the answer that it is about.
 */
export type MoveTable<Out> = { readonly [T in RunMove['type']]?: (move: MoveOf<T>) => readonly Out[] }

/** Maps a move to a protocol. */
export function outOf<Out>(table: MoveTable<Out>, move: RunMove): readonly Out[] {
  const map = table[move.type] as ((given: RunMove) => readonly Out[]) | undefined
  return map?.call(table, move) ?? []
}

/** Moves of the step that stay valid if its text is replaced. */
type KeptMove = Extract<RunMove, { type: 'call_started' | 'call_requested' }>

interface OpenPart {
  readonly kind: 'text' | 'reasoning'
  readonly part: number
  readonly partId: string
}

/**
 * Turns the events of one run, from its first, into moves. The same events give the same moves, so the stream of a
 * reader that reconnects reads the earlier events again and misses nothing.
 */
export class RunMoves {
  #state: RunState | undefined
  #shown: ShownText = noText
  #open: OpenPart | undefined
  #kept: KeptMove[] = []
  /** Whether the step has shown anything that can be taken back. */
  #hasContent = false
  #isInStep = false
  #parts = 0
  #started = new Set<string>()
  #answer = 1
  /** Whether the model was called since the last message of the user: then the next one has an answer of its own. */
  #hasAnswered = false

  /** The state after the last event. */
  get state(): RunState | undefined {
    return this.#state
  }

  /** Which answer of the run the last event belongs to, from 1. */
  get answer(): number {
    return this.#answer
  }

  /** Returns the moves of the next event. */
  next(event: RuntimeEvent): readonly RunMove[] {
    const waiting = this.#state?.pendingInputs ?? []
    const state = evolve(this.#state, event)
    this.#state = state
    this.#shown = nextShownText(this.#shown, { event, state })
    return [
      ...this.#movesBefore(event),
      ...this.#textMoves(event),
      ...this.#movesOf(event),
      ...this.#inputMoves(event, waiting),
    ]
  }

  #inputMoves(event: RuntimeEvent, waiting: RunState['pendingInputs']): readonly RunMove[] {
    if (event.type === 'input_received' && event.delivery === 'start') {
      const messageId = event.receipt ?? firstMessageId(event.runId)
      return [{ type: 'input_taken', messageId, parts: event.message.parts, answer: 1 }]
    }
    if (event.type !== 'input_settled') return []
    const { receipt: messageId, why } = event
    const { parts } = waiting.find(({ inputId }) => inputId === messageId)?.message ?? { parts: [] }
    if (!event.delivered) return [{ type: 'input_dropped', messageId, parts, ...omitUndefined({ why }) }]
    const ended = this.#endStep()
    if (this.#hasAnswered) this.#answer++
    this.#hasAnswered = false
    return [...ended, { type: 'input_taken', messageId, parts, answer: this.#answer }]
  }

  /**
   * Returns the first moves of a stream that continues after the events so far, which another stream has shown. A step that
   * has shown nothing begins again: its reader may have kept nothing of it, and would take a later part for one of the step
   * before, which is gone when the step is withdrawn.
   */
  reopen(): readonly RunMove[] {
    this.#open = undefined
    const state = this.#state
    if (state === undefined) return []
    const isUnseen = this.#isInStep && !this.#hasContent
    return [{ type: 'run_reopened', state, answer: this.#answer }, ...(isUnseen ? this.#beginStep() : [])]
  }

  /** Whether the run waits for a command after the events so far. */
  get isWaiting(): boolean {
    return this.#state !== undefined && isSuspended(this.#state)
  }

  /** Returns the last moves of a stream that ends after the events so far, because the run waits. */
  movesAtWait(waits: RunWaits): readonly RunMove[] {
    return this.#state ? [...this.#endPart(), { type: 'run_waits', state: this.#state, waits }] : []
  }

  /** The moves that come before the text that an event shows. */
  #movesBefore(event: RuntimeEvent): readonly RunMove[] {
    if (event.type === 'run_started') {
      const { runId, agent, sessionId, parent, at } = event
      return [
        {
          type: 'run_started',
          runId,
          agent,
          at,
          ...omitUndefined({ sessionId, parentRunId: parent?.runId }),
        },
      ]
    }
    if (event.type === 'model_call_started') {
      return event.attempt === 1 ? [...this.#endStep(), ...this.#beginStep()] : this.#withdrawAttempt()
    }
    return event.type === 'run_finished' && !this.#shown.isMessage ? this.#withdrawAttempt() : []
  }

  #textMoves(event: RuntimeEvent): readonly RunMove[] {
    const part = event.type === 'assistant_text_delta' ? event.part : 0
    return this.#shown.updates.flatMap(({ type, text }) => {
      if (type === 'text') return this.#addTo('text', part, text)
      // The attempt was withdrawn whole already.
      return this.#hasContent ? [...this.#withdraw(), ...this.#kept] : []
    })
  }

  #movesOf(event: RuntimeEvent): readonly RunMove[] {
    if (event.type === 'assistant_reasoning_delta')
      return event.text === '' ? [] : this.#addTo('reasoning', event.part, event.text)
    if (event.type === 'tool_input_delta') {
      const { toolCallId, text } = event
      return [...this.#startCall(toolCallId, event.name), { type: 'call_input_added', toolCallId, text }]
    }
    if (event.type === 'tool_request_ready') return this.#requestCall(event)
    if (event.type === 'tool_requests_collected') return this.#endPart()
    if (event.type === 'run_finished') return [...this.#endStep(), this.#finish(event)]
    return callMoves(event)
  }

  #addTo(kind: OpenPart['kind'], part: number, text: string): readonly RunMove[] {
    const moves: RunMove[] = []
    if (this.#open?.kind !== kind || this.#open.part !== part) {
      moves.push(...this.#endPart())
      this.#open = { kind, part, partId: `${this.#state?.runId}.${++this.#parts}` }
      moves.push({ type: 'part_started', kind, partId: this.#open.partId })
    }
    this.#hasContent = true
    moves.push({ type: 'part_added', kind, partId: this.#open.partId, text })
    return moves
  }

  #endPart(): readonly RunMove[] {
    if (this.#open === undefined) return []
    const { kind, partId } = this.#open
    this.#open = undefined
    return [{ type: 'part_ended', kind, partId }]
  }

  #startCall(toolCallId: string, name: string): readonly RunMove[] {
    if (this.#started.has(toolCallId)) return []
    this.#started.add(toolCallId)
    this.#hasContent = true
    const move = { type: 'call_started', toolCallId, name } as const
    this.#kept.push(move)
    return [...this.#endPart(), move]
  }

  #requestCall({ toolCallId, name, input }: EventOf<'tool_request_ready'>): readonly RunMove[] {
    const started = this.#startCall(toolCallId, name)
    const move = { type: 'call_requested', toolCallId, name, input } as const
    this.#kept.push(move)
    return [...started, move]
  }

  #withdrawAttempt(): readonly RunMove[] {
    this.#kept = []
    return this.#hasContent ? this.#withdraw() : []
  }

  #withdraw(): readonly RunMove[] {
    const ended = this.#endPart()
    this.#hasContent = this.#kept.length > 0
    return [...ended, { type: 'step_withdrawn' }]
  }

  #beginStep(): readonly RunMove[] {
    this.#isInStep = true
    this.#hasAnswered = true
    return [{ type: 'step_started' }]
  }

  #endStep(): readonly RunMove[] {
    const ended = this.#endPart()
    this.#kept = []
    this.#hasContent = false
    if (!this.#isInStep) return ended
    this.#isInStep = false
    return [...ended, { type: 'step_ended' }]
  }

  #finish({ runId, at, reason, detail, usage, costUsd }: EventOf<'run_finished'>): RunMove {
    const text = this.#state?.lastText ?? ''
    return { type: 'run_finished', runId, at, reason, text, usage, ...omitUndefined({ detail, costUsd }) }
  }
}

/** The moves of calls after the reply that asks for them. */
function callMoves(event: RuntimeEvent): readonly RunMove[] {
  if (event.type === 'approval_requested') {
    const { type, toolCallId, attempt, inputDigest, reason } = event
    return [{ type, toolCallId, attempt, inputDigest, ...omitUndefined({ reason }) }]
  }
  if (event.type === 'approval_decided') {
    const { type, toolCallId, attempt, inputDigest, approved, reason } = event
    return [{ type, toolCallId, attempt, inputDigest, approved, ...omitUndefined({ reason }) }]
  }
  if (event.type === 'tool_progress') {
    return [{ type: 'call_progressed', toolCallId: event.toolCallId, data: event.data }]
  }
  if (event.type !== 'tool_result') return []
  const { toolCallId, name, outcome, content } = event
  return [{ type: 'call_ended', toolCallId, name, outcome, content }]
}

/** The id of the message that a run began with, where its sender gave none. */
function firstMessageId(runId: string): string {
  return `${runId}.input`
}

/** The id of an answer of a run, as a message: the first has that of the run. */
export function answerIdOf(runId: string, answer: number): string {
  return answer === 1 ? runId : `${runId}:${answer}`
}

/** The run of an answer, by the id of the message. */
export function runOfAnswer(messageId: string): string {
  return messageId.replace(/:\d{1,9}$/, '')
}

/** The text of a result. */
export function resultText(content: readonly ResultPart[]): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/**
 * Returns the id of a question. It names the start of the call and its input, so that an answer to an older question
 * has no effect.
 */
export function approvalIdOf(question: {
  readonly toolCallId: string
  readonly attempt: number
  readonly inputDigest: string
}): string {
  return `${question.attempt}.${question.inputDigest}.${question.toolCallId}`
}

/** Returns the question of an approval id; `undefined` if this server made no such id. */
export function questionOf(
  approvalId: string,
): { readonly toolCallId: string; readonly attempt: number; readonly inputDigest: string } | undefined {
  const [, attempt, inputDigest, toolCallId] =
    /^(\d{1,6})\.([^.]{1,200})\.([^.]{1,200})$/.exec(approvalId) ?? []
  if (attempt === undefined || inputDigest === undefined || toolCallId === undefined) return undefined
  return { attempt: Number(attempt), inputDigest, toolCallId }
}

/** Maps the events of a run, from its first: each to what its moves are in the protocol. */
export function mappedEvents<Out>(
  events$: Observable<RuntimeEvent>,
  newTable: () => MoveTable<Out>,
): Observable<Out> {
  return new Observable((subscriber) => {
    const [moves, table] = [new RunMoves(), newTable()]
    return events$.subscribe({
      next: (event) => {
        for (const move of moves.next(event)) for (const out of outOf(table, move)) subscriber.next(out)
      },
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    })
  })
}

const eventStream = option.valueThat(
  'an Observable of the events of a run, such as run.events$ or watch(ledger, runId)',
  (value) => typeof (Object(value) as Partial<Observable<RuntimeEvent>>).subscribe === 'function',
)

/** Refuses what is no stream of events where one is mapped, such as a list of them. Throws a `ConfigurationError`. */
export function requireEvents(subject: string, events$: Observable<RuntimeEvent>): void {
  requireOptions(subject, eventStream, events$, 'the stream of events')
}
