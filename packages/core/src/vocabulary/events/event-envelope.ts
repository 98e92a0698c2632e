import type { Cause } from './cause.ts'
import type { Removed } from '../signals/event-parts.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'

/** What every event has. `seq` counts 1, 2, 3 … within the run; `at` is milliseconds since 1970 UTC. */
export interface EventEnvelope {
  readonly runId: RunId
  readonly seq: number
  /** Which writer appended it: each take-over of the run raises it. */
  readonly epoch: number
  /** 0 before the first model call. */
  readonly turn: number
  /** Milliseconds since 1970 UTC, in the years 0 to 9999. Never falls within a run, whatever the clocks of its processes do. */
  readonly at: number
  /** The version of this event type's body. */
  readonly v: number
  /** On events that concern one tool call. */
  readonly toolCallId?: ToolCallId
  /** What decided the event, where its type and body do not say it: `usualCause` is what they say. */
  readonly cause?: Cause
  /** The key of the inbox entry that decided the event, where one did: its sender finds the decision by it. */
  readonly inboxKey?: string
  /** The process was being drained: what had arrived was decided, and nothing that followed from it was begun. */
  readonly draining?: true
  /** Present where what was said is gone from the ledger: the event holds its facts, and markers in the place of content. */
  readonly removed?: Removed
}
