import { addUsage, type EventOf, type ModelFailure, type Usage } from '@tallystick/core/vocabulary'
import { finishReason, genAi, own, providerName } from '../conventions/names.ts'
import {
  costAttributes,
  usageAttributes,
  type MaybeAttributes,
  type OpenSpan,
  type SpanError,
} from '../span/open-span.ts'
import { nameText } from '../span/span-text.ts'
import type { Span } from '../span/span.ts'

/** What the ledger says of the use of one attempt: totals, so that a later report replaces an earlier one. */
interface AttemptUse {
  readonly usage: Usage
  readonly costUsd?: number
}

/** One call of a model, with all its attempts. Attempts of another model are another call. */
export class ChatSpan {
  readonly turn: number
  readonly model: string
  readonly span: OpenSpan
  readonly #uses = new Map<number, AttemptUse>()
  #attemptStartedAt = 0
  #attempts = 0
  #failedAt: number | undefined
  #failure: ModelFailure | undefined

  constructor(event: EventOf<'model_call_started'>, span: OpenSpan) {
    this.turn = event.turn
    this.model = modelKey(event)
    this.span = span
    this.addAttempt(event)
  }

  /** Whether an attempt belongs to this call. */
  continuesWith(event: EventOf<'model_call_started'>): boolean {
    return event.turn === this.turn && modelKey(event) === this.model
  }

  addAttempt({ at, maxOutputTokens }: EventOf<'model_call_started'>): void {
    this.#attempts++
    this.#attemptStartedAt = at
    this.#failure = undefined
    this.#failedAt = undefined
    this.span.set({ [genAi.maxTokens]: maxOutputTokens, [own.attempts]: this.#attempts })
  }

  begin({ at, providerMessageId, servedModel }: EventOf<'assistant_started'>): void {
    this.span.set({
      [genAi.timeToFirstChunk]: (at - this.#attemptStartedAt) / 1000,
      ...replyAttributes({ providerMessageId, servedModel }),
    })
  }

  use({ attempt, usage, costUsd }: EventOf<'usage_updated'>): void {
    this.#uses.set(attempt, { usage, ...(costUsd !== undefined && { costUsd }) })
  }

  fail({ at, attempt, failure }: EventOf<'model_stream_failed'>): void {
    this.#failure = failure
    this.#failedAt = at
    this.span.addEvent(at, 'tallystick.attempt_failed', {
      [own.attempt]: attempt,
      [genAi.errorType]: failure.class,
    })
  }

  /** Ends it with its whole reply. */
  finish(event: EventOf<'assistant_message_finished'>): Span {
    const { at, stopReason, partial, providerMessageId } = event
    this.span.set({
      [genAi.finishReasons]: [finishReason(stopReason)],
      ...replyAttributes({ providerMessageId }),
    })
    return this.#end(at, partial ? { type: stopReason } : undefined)
  }

  /** Ends it without a reply: at its last failure, or at an event after which none can come. */
  giveUp(at: number): Span {
    const failure = this.#failure
    return this.#end(this.#failedAt ?? at, failure ? { type: failure.class } : { type: 'cancelled' })
  }

  #end(at: number, error: SpanError | undefined): Span {
    const uses = [...this.#uses.values()]
    this.span.set(usageAttributes(uses.reduce<Usage>((sum, { usage }) => addUsage(sum, usage), {})))
    const costs = uses.flatMap(({ costUsd }) => costUsd ?? [])
    this.span.set(costAttributes(costs.length > 0 ? costs.reduce((sum, cost) => sum + cost, 0) : undefined))
    return this.span.end(at, error)
  }
}

function modelKey({ model }: EventOf<'model_call_started'>): string {
  return JSON.stringify([model.provider, model.api, model.modelId])
}

function replyAttributes(reply: {
  readonly providerMessageId?: string | undefined
  readonly servedModel?: string | undefined
}): MaybeAttributes {
  const { providerMessageId: id, servedModel } = reply
  return {
    [genAi.responseId]: id === undefined ? undefined : nameText(id),
    [genAi.responseModel]: servedModel === undefined ? undefined : nameText(servedModel),
  }
}

/** What a request of a model tells of the model. */
export function modelAttributes(model: {
  readonly provider: string
  readonly modelId: string
}): MaybeAttributes {
  return {
    [genAi.provider]: nameText(providerName(model.provider)),
    [genAi.requestModel]: nameText(model.modelId),
  }
}
