import type { RuntimeEvent } from '@tallystick/core'
import type { EventOf, JsonObject, Outcome, ResultPart, ToolCallId } from '@tallystick/core/vocabulary'
import { omitUndefined } from '@tallystick/core/kit'

/** A decision about a call, with the event that holds it. */
export type CallDecision = Pick<
  EventOf<'approval_decided'>,
  'seq' | 'at' | 'approved' | 'by' | 'via' | 'input' | 'reason'
>

/** What became of a tool call: what was asked for, what guardrails and approvers made of it, what ran, and how it ended. */
export interface CallStory {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly turn: number
  /** Of the model call that asked for it. */
  readonly attempt: number
  /** What the model asked for, and the event that says so. */
  readonly requested: JsonObject
  readonly requestedSeq: number
  /** What the model wrote, where it is no JSON object. */
  readonly malformed?: string
  /** What guardrails put in the place of the input. */
  readonly guarded?: JsonObject
  readonly guardedSeq?: number
  readonly decision?: CallDecision
  /** What the tool was started with; absent where it was not. */
  readonly executed?: JsonObject
  readonly startedSeq?: number
  readonly outcome?: Outcome
  readonly content?: readonly ResultPart[]
  readonly durationMs?: number
  /** The call of another run whose recorded result was served, so that nothing ran. */
  readonly reused?: ToolCallId
  readonly resultSeq?: number
}

/** Puts the stories of the calls of a run together, event by event. */
export class CallStories {
  readonly #stories = new Map<ToolCallId, CallStory>()

  /** Every call so far, in the order in which they were asked for. */
  get all(): readonly CallStory[] {
    return [...this.#stories.values()]
  }

  of(toolCallId: ToolCallId): CallStory | undefined {
    return this.#stories.get(toolCallId)
  }

  follow(event: RuntimeEvent): void {
    if (event.type === 'tool_request_ready') this.#begin(event)
    if (event.type === 'tool_requests_collected') this.#guard(event)
    if (event.type === 'approval_decided') this.#decide(event)
    if (event.type === 'tool_started') {
      const { decision, guarded, requested = {} } = this.#stories.get(event.toolCallId) ?? {}
      const executed = decision?.input ?? guarded ?? requested
      this.#add(event.toolCallId, { executed, startedSeq: event.seq })
    }
    if (event.type === 'tool_result') {
      const { toolCallId, outcome, content, durationMs, reused, seq } = event
      this.#add(toolCallId, { outcome, content, resultSeq: seq, ...omitUndefined({ durationMs, reused }) })
    }
  }

  #guard({ calls, seq }: EventOf<'tool_requests_collected'>): void {
    for (const { toolCallId, input } of calls) {
      if (input) this.#add(toolCallId, { guarded: input, guardedSeq: seq })
    }
  }

  #decide({ toolCallId, ...event }: EventOf<'approval_decided'>): void {
    const { seq, at, approved, by, via, input, reason } = event
    this.#add(toolCallId, { decision: { seq, at, approved, by, ...omitUndefined({ via, input, reason }) } })
  }

  #begin({ toolCallId, name, turn, attempt, input, malformed, seq }: EventOf<'tool_request_ready'>): void {
    this.#stories.set(toolCallId, {
      toolCallId,
      name,
      turn,
      attempt,
      requested: input,
      requestedSeq: seq,
      ...(malformed && { malformed: malformed.text }),
    })
  }

  #add(toolCallId: ToolCallId, more: Partial<CallStory>): void {
    const story = this.#stories.get(toolCallId)
    if (story) this.#stories.set(toolCallId, { ...story, ...more })
  }
}
