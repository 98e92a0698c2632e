import type { PendingApproval, RunState, RuntimeEvent, Usage } from '@tallystick/core'
import {
  AnswerReader,
  type DeferredCall,
  advanceShownText,
  noText,
  omitUndefined,
  option,
  requireOptions,
  type ShownText,
  isBackgroundInput,
} from '@tallystick/core/internal'
import { evolve, isSuspended } from '@tallystick/core/machine'
import type {
  EventOf,
  EventType,
  FinishReason,
  Json,
  JsonObject,
  LimitName,
  Outcome,
  ResultPart,
  UserPart,
} from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'

/** A start of a call that waits for an approval, with its input: an answer to an older question has no effect. */
interface Question {
  readonly toolCallId: string
  readonly attempt: number
  readonly inputDigest: string
}

interface ReplyPart {
  readonly kind: 'text' | 'reasoning'
  readonly partId: string
}

interface UserInput {
  readonly messageId: string
  readonly parts: readonly UserPart[]
}

/** The steps of a run in the terms of a chat. Every protocol is made from these moves, so that all show the same text. */
interface MoveBodies {
  run_started: {
    readonly runId: string
    readonly agent: string
    readonly sessionId?: string
    readonly parentRunId?: string
    /** Milliseconds since 1970 UTC. */
    readonly at: number
  }
  /**
   * The model is shown a message of the user: the first of the run, or one that came later. What follows answers it:
   * `answer` counts the answers of the run from 1, and messages that are shown together share one.
   */
  input_taken: UserInput & { readonly answer: number }
  /** A message of the user came, and the run ended without showing it. */
  input_dropped: UserInput & { readonly why?: string }
  step_started: object
  /** A part of the reply begins, and has to end before another one begins. */
  part_started: ReplyPart
  part_added: ReplyPart & { readonly text: string }
  part_ended: ReplyPart
  /** More of the answer is there, by the agent's output schema; `null` where what was there is no part of it any more. */
  output_written: { readonly outputId: string; readonly value: Json }
  call_started: { readonly toolCallId: string; readonly name: string }
  call_input_added: { readonly toolCallId: string; readonly text: string }
  call_requested: { readonly toolCallId: string; readonly name: string; readonly input: JsonObject }
  /**
   * Everything shown in this step is void: its attempt failed, or its answer was replaced. Moves that are still valid
   * follow again.
   */
  step_withdrawn: object
  approval_requested: Question & { readonly reason?: string }
  approval_decided: Question & { readonly approved: boolean; readonly reason?: string }
  call_progressed: { readonly toolCallId: string; readonly data: unknown }
  call_ended: {
    readonly toolCallId: string
    readonly name: string
    readonly outcome: Outcome
    readonly content: readonly ResultPart[]
  }
  step_ended: object
  /** A stream begins that continues the run after another one. */
  run_reopened: { readonly state: RunState; readonly answer: number }
  /** A stream ends because what follows answers a later message. */
  answer_ended: { readonly state: RunState; readonly answer: number }
  /** A stream ends because the run waits for a command before it shows the message of the stream. */
  message_waits: { readonly state: RunState; readonly waits: RunWaits }
  /** A stream ends because the run waits for a command. */
  run_waits: { readonly state: RunState; readonly waits: RunWaits }
  run_finished: {
    readonly runId: string
    readonly at: number
    readonly reason: FinishReason
    readonly detail?: string
    readonly text: string
    readonly usage: Usage
    readonly costUsd?: number
  }
}

type MoveType = keyof MoveBodies
export type MoveOf<T extends MoveType> = { readonly type: T } & MoveBodies[T]
export type RunMove = { [T in MoveType]: MoveOf<T> }[MoveType]

/** The calls and the limit that a run and its child runs wait for. */
export interface RunWaits {
  readonly approvals: readonly PendingApproval[]
  /** Calls that the caller or another system carries out. */
  readonly deferred: readonly DeferredCall[]
  /** The limit that has to be raised. */
  readonly limit?: LimitName
}

/**
 * Maps moves to a protocol; null if it sends nothing. If it has `answer_ended`, each answer of a run is a message of its
 * own, and a stream ends with the answer that it is about.
 */
export type MoveTable<Out> = {
  readonly [T in MoveType]: ((move: MoveOf<T>) => readonly Out[]) | null
}

export function mapMove<Out>(table: MoveTable<Out>, move: RunMove): readonly Out[] {
  const map = table[move.type] as ((given: RunMove) => readonly Out[]) | null
  return map?.(move) ?? []
}

/** Moves of the step that stay valid if its text is replaced. */
type KeptMove = MoveOf<'call_started'> | MoveOf<'call_requested'>

/**
 * Turns the events of one run, from its first, into moves. The same events give the same moves, so the stream of a
 * reader that reconnects reads the earlier events again and misses nothing.
 */
export class RunMoves {
  #state: RunState | undefined
  #shown: ShownText = noText
  readonly #answers = new AnswerReader()
  #open: (ReplyPart & { readonly part: number }) | undefined
  #kept: KeptMove[] = []
  /** True if the step has shown anything that could be withdrawn. */
  #hasContent = false
  #isInStep = false
  #parts = 0
  #started = new Set<string>()
  #answer = 1
  /** True if the model was called since the last message of the user: the next message then has its own answer. */
  #hasAnswered = false

  /** The state after the last event. */
  get state(): RunState | undefined {
    return this.#state
  }

  /** The answer of the run that the last event belongs to, from 1. */
  get answer(): number {
    return this.#answer
  }

  /** Returns the moves of the next event. */
  next(event: RuntimeEvent): readonly RunMove[] {
    const waiting = this.#state?.pendingInputs ?? []
    const state = evolve(this.#state, event)
    this.#state = state
    this.#shown = advanceShownText(this.#shown, { event, state })
    const map = this.#table[event.type] as ((event: RuntimeEvent) => readonly RunMove[]) | null
    const shown = [...this.#movesBefore(event), ...this.#textMoves(event)]
    const output = this.#outputMoves(event, shown)
    return [...shown, ...output, ...(map?.(event) ?? []), ...this.#inputMoves(event, waiting)]
  }

  /**
   * Returns the first moves of a stream that continues after the events so far, which another stream has shown. A step that
   * has shown nothing begins again: its reader may not know the step, and would add later parts to the step before, where
   * a withdrawal of the step would not reach them.
   */
  reopen(): readonly RunMove[] {
    this.#open = undefined
    const state = this.#state
    if (state === undefined) return []
    const isUnseen = this.#isInStep && !this.#hasContent
    return [{ type: 'run_reopened', state, answer: this.#answer }, ...(isUnseen ? this.#beginStep() : [])]
  }

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
      const origin = omitUndefined({ sessionId, parentRunId: parent?.runId })
      return [{ type: 'run_started', runId, agent, at, ...origin }]
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

  #outputMoves(event: RuntimeEvent, before: readonly RunMove[]): readonly RunMove[] {
    const state = this.#state
    if (state === undefined) return []
    const written = this.#answers.next({ event, state }, this.#shown)
    // The text of an answer without a schema is its own view. What was written of a step that is void is void with it.
    if (written === undefined || state.definition.output === undefined) return []
    const { value } = written
    if (value === undefined && before.some(({ type }) => type === 'step_withdrawn')) return []
    return [
      { type: 'output_written', outputId: `${state.runId}.output.${this.#answer}`, value: value ?? null },
    ]
  }

  /** The moves of each type of event besides those for text and input; null for none. */
  readonly #table: { readonly [T in EventType]: ((event: EventOf<T>) => readonly RunMove[]) | null } = {
    run_started: null,
    run_resumed: null,
    run_finished: ({ runId, at, reason, detail, usage, costUsd }) => {
      // An edit of a session answers nobody.
      if (this.#state?.sessionEdit) return this.#endStep()
      const text = this.#state?.lastText ?? ''
      const end = { runId, at, reason, text, usage, ...omitUndefined({ detail, costUsd }) }
      return [...this.#endStep(), { type: 'run_finished', ...end }]
    },
    schedule_set: null,
    schedule_fired: null,
    history_carried: null,
    session_edited: (event) => this.#editMoves(event),
    history_edited: null,
    input_received: null,
    input_settled: null,
    model_call_started: null,
    assistant_started: null,
    assistant_text_delta: null,
    assistant_reasoning_delta: ({ text, part }) => (text === '' ? [] : this.#addTo('reasoning', part, text)),
    tool_input_delta: ({ toolCallId, name, text }) => [
      ...this.#startCall(toolCallId, name),
      { type: 'call_input_added', toolCallId, text },
    ],
    tool_request_ready: ({ toolCallId, name, input }) => {
      const started = this.#startCall(toolCallId, name)
      const move = { type: 'call_requested', toolCallId, name, input } as const
      this.#kept.push(move)
      return [...started, move]
    },
    usage_updated: null,
    assistant_message_finished: null,
    model_stream_failed: null,
    tool_requests_collected: () => this.#endPart(),
    approval_requested: ({ type, toolCallId, attempt, inputDigest, reason }) => [
      { type, toolCallId, attempt, inputDigest, ...omitUndefined({ reason }) },
    ],
    approval_added: null,
    approval_applied: null,
    approval_withdrawn: null,
    approval_decided: ({ type, toolCallId, attempt, inputDigest, approved, reason }) => [
      { type, toolCallId, attempt, inputDigest, approved, ...omitUndefined({ reason }) },
    ],
    tool_started: null,
    tool_progress: ({ toolCallId, data }) => [{ type: 'call_progressed', toolCallId, data }],
    tool_deferred: null,
    tool_attempt_failed: null,
    tool_result: ({ toolCallId, name, outcome, content }) => [
      { type: 'call_ended', toolCallId, name, outcome, content },
    ],
    background_ended: null,
    tool_results_injected: null,
    compaction_started: null,
    context_compacted: null,
    agent_handed_off: null,
    guardrail_tripped: null,
    guardrails_checked: null,
    output_checked: null,
    limit_reached: null,
    limit_raised: null,
    cancel_requested: null,
    feedback_given: null,
  }

  #inputMoves(event: RuntimeEvent, waiting: RunState['pendingInputs']): readonly RunMove[] {
    if (event.type === 'input_received' && event.delivery === 'start') {
      // The id of the message that the run began with, if its sender gave none.
      const messageId = event.receipt ?? `${event.runId}.input`
      return [{ type: 'input_taken', messageId, parts: event.message.parts, answer: 1 }]
    }
    // What comes from the background is a tool's, and no message of the user.
    if (event.type !== 'input_settled' || isBackgroundInput(event.receipt)) return []
    const { receipt: messageId, why } = event
    const { parts } = waiting.find(({ inputId }) => inputId === messageId)?.message ?? { parts: [] }
    if (!event.delivered) return [{ type: 'input_dropped', messageId, parts, ...omitUndefined({ why }) }]
    const ended = this.#endStep()
    if (this.#hasAnswered) this.#answer++
    this.#hasAnswered = false
    return [...ended, { type: 'input_taken', messageId, parts, answer: this.#answer }]
  }

  /** What was added to a session, as if it had been said; what was taken from it is left out by who reads the runs before. */
  #editMoves({ runId, messages = [] }: EventOf<'session_edited'>): readonly RunMove[] {
    return messages.flatMap((message, index): readonly RunMove[] => {
      if (message.role === 'tool') return []
      const ended = this.#endStep()
      if (message.role === 'user') {
        if (this.#hasAnswered) this.#answer++
        this.#hasAnswered = false
        const { parts } = message
        return [
          ...ended,
          { type: 'input_taken', messageId: `${runId}.${index}`, parts, answer: this.#answer },
        ]
      }
      const texts = message.parts.flatMap((part, place) =>
        part.type === 'text' ? this.#addTo('text', place, part.text) : [],
      )
      return [...ended, ...this.#beginStep(), ...texts, ...this.#endStep()]
    })
  }

  #addTo(kind: ReplyPart['kind'], part: number, text: string): readonly RunMove[] {
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
}

/** The id of an answer of a run as a message. The first answer has the id of the run. */
export function toAnswerId(runId: string, answer: number): string {
  return answer === 1 ? runId : `${runId}:${answer}`
}

/** Reads the run from the id of an answer. */
export function parseAnswerId(messageId: string): string {
  return messageId.replace(/:\d{1,9}$/, '')
}

export function toResultText(content: readonly ResultPart[]): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

export function toApprovalId({ toolCallId, attempt, inputDigest }: Question): string {
  return `${attempt}.${inputDigest}.${toolCallId}`
}

/** Reads the question from an approval id; `undefined` if this server made no such id. */
export function parseApprovalId(approvalId: string): Question | undefined {
  const [, attempt, inputDigest, toolCallId] =
    /^(\d{1,6})\.([^.]{1,200})\.([^.]{1,200})$/.exec(approvalId) ?? []
  if (attempt === undefined || inputDigest === undefined || toolCallId === undefined) return undefined
  return { attempt: Number(attempt), inputDigest, toolCallId }
}

/** The end of a run for a protocol: with an answer, with one that was cut off or withheld, or without one. */
export type RunEnding = 'completed' | 'cut' | 'withheld' | 'cancelled' | 'failed'

/** At a limit, the text so far is the answer. */
export const runEndings: Readonly<Record<FinishReason, RunEnding>> = {
  answered: 'completed',
  handed_back: 'completed',
  stopped: 'completed',
  turn_limit: 'cut',
  tool_call_limit: 'cut',
  token_limit: 'cut',
  cost_limit: 'cut',
  time_limit: 'cut',
  repeat_limit: 'cut',
  output_truncated: 'cut',
  refused: 'withheld',
  guardrail: 'withheld',
  cancelled: 'cancelled',
  model_failed: 'failed',
  empty_reply: 'failed',
  output_invalid: 'failed',
  context_overflow: 'failed',
}

const eventStream = option.valueThat(
  'an Observable of the events of a run, such as run.events$ or watch(ledger, runId)',
  (value) => typeof (Object(value) as Partial<Observable<RuntimeEvent>>).subscribe === 'function',
)

/**
 * Maps the events of a run, from its first, to a protocol. Throws a `ConfigurationError` for a value that is not a stream of
 * events, such as a list of them.
 */
export function mapEvents<Out>(
  subject: string,
  events$: Observable<RuntimeEvent>,
  newTable: () => MoveTable<Out>,
): Observable<Out> {
  requireOptions(subject, eventStream, events$, 'the stream of events')
  return new Observable((subscriber) => {
    const [moves, table] = [new RunMoves(), newTable()]
    return events$.subscribe({
      next: (event) => {
        for (const move of moves.next(event)) for (const out of mapMove(table, move)) subscriber.next(out)
      },
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    })
  })
}
