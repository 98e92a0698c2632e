import { addUsage, type EventOf, type Usage } from '@tallystick/core/vocabulary'
import { genAi } from '../conventions/names.ts'
import { costAttributes, usageAttributes, type OpenSpan, type SpanError } from '../span/open-span.ts'
import type { Span } from '../span/span.ts'

/** A call of a model that sums up older history. */
export class SummarySpan {
  readonly span: OpenSpan
  #usage: Usage = {}
  #costUsd: number | undefined

  constructor(span: OpenSpan) {
    this.span = span
  }

  /** The process before this one stopped while it waited for the summary, and it is asked for again. */
  restart({ at, interrupted }: EventOf<'compaction_started'>): void {
    this.#spend(interrupted?.usage, interrupted?.costUsd)
    this.span.addEvent(at, 'tallystick.attempt_failed', { [genAi.errorType]: 'interrupted' })
  }

  finish({ at, usage, costUsd, failure, abandoned }: EventOf<'context_compacted'>): Span {
    this.#spend(usage, costUsd)
    const type = failure?.class ?? (abandoned ? 'abandoned' : undefined)
    return this.#end(at, type === undefined ? undefined : { type })
  }

  /** Ends it without its summary. */
  giveUp(at: number): Span {
    return this.#end(at, { type: 'cancelled' })
  }

  #end(at: number, error: SpanError | undefined): Span {
    this.span.set({ ...usageAttributes(this.#usage), ...costAttributes(this.#costUsd) })
    return this.span.end(at, error)
  }

  #spend(usage: Usage = {}, costUsd?: number): void {
    this.#usage = addUsage(this.#usage, usage)
    if (costUsd !== undefined) this.#costUsd = (this.#costUsd ?? 0) + costUsd
  }
}
