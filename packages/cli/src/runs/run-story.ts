import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { EventOf, EventType, ModelFailure, ToolCallId } from '@tallystick/core/vocabulary'
import { CallStories, type CallStory } from './call-story.ts'

/** The events that a part of a story is made of, and when the last of them was. */
interface Placed {
  readonly turn: number
  readonly fromSeq: number
  readonly toSeq: number
  /** Milliseconds since 1970 UTC. */
  readonly at: number
}

/** A part of what happened in a run, in order. */
export type StoryPart =
  | (Placed & { readonly kind: 'input'; readonly event: EventOf<'input_received'> })
  | (Placed & { readonly kind: 'history'; readonly messages: number })
  | (Placed & {
      readonly kind: 'reply'
      readonly event: EventOf<'assistant_message_finished'>
      readonly tookMs: number
    })
  | (Placed & { readonly kind: 'failed' } & FailedAttempt)
  | (Placed & { readonly kind: 'calls'; readonly calls: readonly CallStory[] })
  | (Placed & { readonly kind: 'note'; readonly event: RuntimeEvent })

/** A model call that failed, with the text and calls that were withdrawn. */
interface FailedAttempt {
  readonly attempt: number
  readonly failure: ModelFailure
  readonly retryAt?: number
  readonly tookMs: number
  /** Text that had streamed, and that no reply holds. */
  readonly withdrawn: string
  readonly withdrawnCalls: readonly CallStory[]
}

type Draft =
  | Exclude<StoryPart, { kind: 'calls' | 'failed' }>
  | (Placed & { readonly kind: 'calls'; readonly ids: readonly ToolCallId[] })
  | (Placed & {
      readonly kind: 'failed'
      readonly event: EventOf<'model_stream_failed'>
      readonly tookMs: number
    })

/** What a run did, part by part. */
export interface RunStory {
  readonly parts: readonly StoryPart[]
  readonly calls: readonly CallStory[]
}

/** Puts the story of a run together from its events, in order. */
export class StoryBuilder {
  readonly #calls = new CallStories()
  readonly #drafts: Draft[] = []
  #called: EventOf<'model_call_started'> | undefined

  follow(event: RuntimeEvent): void {
    this.#calls.follow(event)
    const { seq, turn, at } = event
    const here = { turn, fromSeq: seq, toSeq: seq, at }
    if (event.type === 'model_call_started') this.#called = event
    if (event.type === 'input_received') this.#drafts.push({ ...here, kind: 'input', event })
    if (event.type === 'history_carried') {
      this.#drafts.push({ ...here, kind: 'history', messages: event.messages.length })
    }
    if (event.type === 'assistant_message_finished') {
      this.#drafts.push({ ...here, ...this.#sinceCall(event), kind: 'reply', event })
    }
    if (event.type === 'model_stream_failed') {
      this.#drafts.push({ ...here, ...this.#sinceCall(event), kind: 'failed', event })
    }
    if (event.type === 'tool_requests_collected') {
      this.#drafts.push({ ...here, kind: 'calls', ids: event.calls.map(({ toolCallId }) => toolCallId) })
    }
    if (noteTypes.has(event.type)) this.#drafts.push({ ...here, kind: 'note', event })
  }

  /** The story so far. What a failed attempt had said is read from the ledger only now. */
  async end(ledger: Ledger, runId: RunId): Promise<RunStory> {
    const parts: StoryPart[] = []
    for (const draft of this.#drafts) {
      if (draft.kind === 'failed') parts.push(await this.#failed(draft, ledger, runId))
      else if (draft.kind === 'calls') parts.push(this.#withCalls(draft))
      else parts.push(draft)
    }
    return { parts, calls: this.#calls.all }
  }

  #sinceCall({ seq, at }: RuntimeEvent): Pick<Placed, 'fromSeq'> & { readonly tookMs: number } {
    const { seq: fromSeq = seq, at: startedAt = at } = this.#called ?? {}
    return { fromSeq, tookMs: at - startedAt }
  }

  #withCalls({ ids, ...draft }: Draft & { readonly kind: 'calls' }): StoryPart {
    const calls = ids.flatMap((id) => this.#calls.of(id) ?? [])
    const toSeq = Math.max(draft.toSeq, ...calls.map(({ resultSeq = 0 }) => resultSeq))
    return { ...draft, toSeq, calls }
  }

  async #failed(
    { event, ...draft }: Draft & { readonly kind: 'failed' },
    ledger: Ledger,
    runId: RunId,
  ): Promise<StoryPart> {
    const { turn, attempt, failure, retryAt } = event
    const isKept = this.#drafts.some(
      (other) => other.kind === 'reply' && other.turn === turn && other.event.attempt === attempt,
    )
    const withdrawnCalls = isKept
      ? []
      : this.#calls.all.filter((call) => call.turn === turn && call.attempt === attempt)
    return {
      ...draft,
      attempt,
      failure,
      withdrawnCalls,
      ...(retryAt !== undefined && { retryAt }),
      withdrawn: isKept ? '' : await attemptText(ledger, { runId, turn, attempt }),
    }
  }
}

/** What an attempt had said, by its deltas. */
async function attemptText(
  ledger: Ledger,
  { runId, turn, attempt }: { readonly runId: RunId; readonly turn: number; readonly attempt: number },
): Promise<string> {
  let text = ''
  for await (const event of ledger.find({ runId, turn, types: ['assistant_text_delta'] })) {
    if (event.type === 'assistant_text_delta' && event.attempt === attempt) text += event.text
  }
  return text
}

/** Events that have a part of the story of their own; those of calls and replies belong to the parts of these. */
const noteTypes: ReadonlySet<EventType> = new Set<EventType>([
  ...(['run_resumed', 'run_finished', 'history_edited', 'input_settled', 'tool_deferred'] as const),
  ...(['compaction_started', 'context_compacted', 'agent_handed_off', 'guardrail_tripped'] as const),
  ...(['output_checked', 'limit_reached', 'limit_raised', 'cancel_requested'] as const),
])

/** The types of events that a story is made of. */
export const storyTypes: readonly EventType[] = [
  ...noteTypes,
  ...(['input_received', 'history_carried', 'model_call_started', 'assistant_message_finished'] as const),
  ...(['model_stream_failed', 'tool_requests_collected', 'tool_request_ready'] as const),
  ...(['approval_decided', 'tool_started', 'tool_result'] as const),
]
