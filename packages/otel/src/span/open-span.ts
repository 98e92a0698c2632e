import { omitUndefined } from '@tallystick/core/kit'
import type { Usage } from '@tallystick/core/vocabulary'
import { genAi, own } from '../conventions/names.ts'
import type { Attributes, AttributeValue, Span, SpanEvent, StartedSpan } from './span.ts'
import { nameText } from './span-text.ts'

/** Facts of which some may be absent. */
export type MaybeAttributes = Readonly<Record<string, AttributeValue | undefined>>

/** Why a span ended in an error: its class, in few words, and never content. */
export interface SpanError {
  readonly type: string
  readonly message?: string
}

/** What a span is begun with, beside what all spans of its run share. */
export interface NewSpan {
  readonly id: string
  readonly parentId: string | undefined
  readonly name: string
  readonly kind?: 'client'
  readonly at: number
  readonly attributes: MaybeAttributes
}

/** A span that has not ended yet. */
export class OpenSpan {
  #started: StartedSpan
  #attributes: Record<string, AttributeValue>
  #events: SpanEvent[] = []

  constructor(started: StartedSpan) {
    this.#started = started
    this.#attributes = { ...started.attributes }
  }

  get spanId(): string {
    return this.#started.spanId
  }

  /** What is known of it now. */
  get started(): StartedSpan {
    return { ...this.#started, attributes: { ...this.#attributes } }
  }

  /** Adds facts; an absent one changes nothing. */
  set(attributes: MaybeAttributes): void {
    Object.assign(this.#attributes, known(attributes))
  }

  addEvent(at: number, name: string, attributes: MaybeAttributes): void {
    this.#events.push({ name, at, attributes: known(attributes) })
  }

  /** Lets it begin anew, later: what came before belongs to another run. */
  beginAt(at: number): void {
    this.#started = { ...this.#started, startedAt: at }
    this.#events = []
  }

  end(endedAt: number, error?: SpanError): Span {
    if (error) this.set({ [genAi.errorType]: nameText(error.type) })
    return {
      ...this.started,
      endedAt,
      events: this.#events,
      status: error ? 'error' : 'unset',
      ...omitUndefined({ statusMessage: error?.message === undefined ? undefined : nameText(error.message) }),
    }
  }
}

/** Facts that are there. Texts of any source are made fit for a name. */
function known(attributes: MaybeAttributes): Attributes {
  return omitUndefined(attributes) as Attributes
}

/** The tokens of a call, or of many. */
export function usageAttributes(usage: Usage): MaybeAttributes {
  return {
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    [genAi.cacheReadTokens]: usage.cacheReadTokens,
    [genAi.cacheWriteTokens]: usage.cacheWriteTokens,
    [genAi.reasoningTokens]: usage.reasoningTokens,
  }
}

/** What a call of a model, or a run, cost. */
export function costAttributes(costUsd: number | undefined): MaybeAttributes {
  return { [own.costUsd]: costUsd }
}
