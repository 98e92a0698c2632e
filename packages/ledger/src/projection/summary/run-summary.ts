import type { RunId, Usage } from '@tallystick/core'
import type { Totals } from '@tallystick/core/machine'
import type { FinishReason, LimitName, ParentRef, ToolCallId } from '@tallystick/core/vocabulary'

import type { CallCount } from './call-counts.ts'

/**
 * The status of a run by its own events.
 * - `done`: it came to what was wanted, or was cancelled
 * - `failed`: it ended otherwise
 * - `suspended`: only a command continues it
 * - `unfinished`: something of it is in flight, or was when its process ended
 * - `unreadable`: it is damaged, or a newer release wrote it
 */
export const runStatuses = ['done', 'failed', 'suspended', 'unfinished', 'unreadable'] as const
export type RunStatus = (typeof runStatuses)[number]

/** A tool call, for people. */
export interface NamedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
}

/** What a run waits for, without its child runs. */
export interface RunWaits {
  /** Calls that a person has to decide about. */
  readonly approvals: readonly NamedCall[]
  /** Calls that continue outside, in no run. */
  readonly deferred: readonly (NamedCall & { readonly externalId: string })[]
  /** Calls whose work another run does, under `runId`. */
  readonly children: readonly (NamedCall & { readonly runId: RunId })[]
  /** The limit that it met, and what it was. */
  readonly limit?: { readonly limit: LimitName; readonly max?: number }
}

/** A run as a list tells of it. Facts only: nothing of what was said in it. */
export interface RunSummary {
  readonly runId: RunId
  readonly status: Exclude<RunStatus, 'unreadable'>
  /** Of its last event. */
  readonly seq: number
  readonly turn: number
  /** Milliseconds since 1970 UTC, of its first and of its last event. */
  readonly startedAt: number
  readonly lastAt: number
  /** Who has the conversation, and all who had it, in order. */
  readonly agent: string
  readonly agents: readonly string[]
  readonly sessionId?: string
  readonly sessionPlace?: number
  readonly parent?: ParentRef
  /** Why it ended. Details are in its last event. */
  readonly reason?: FinishReason
  /** Whether its last event says more about the end. */
  readonly hasDetail?: true
  /** Whether a model call is under way, or its next attempt is due. */
  readonly isStreaming: boolean
  /** Calls that were started and have no result. */
  readonly started: readonly NamedCall[]
  readonly waits: RunWaits
  /** How its tool calls ended, by tool and outcome. */
  readonly calls: readonly CallCount[]
  /** Attempts of model calls that failed. */
  readonly failedAttempts: number
  /** The runs that do the work of a call, in order; in a fork also those that another run has had do it. */
  readonly childRunIds: readonly RunId[]
  readonly turns: number
  readonly toolCalls: number
  /** What the its child runs took, as far as they have ended. Usage and cost are in its own. */
  readonly children: Totals['children']
  readonly usage: Usage
  /** US dollars. */
  readonly costUsd?: number
}

/** A run that cannot be read: with the code of the error, and what it says. */
export interface UnreadableRun {
  readonly runId: RunId
  readonly status: 'unreadable'
  /** As the store has it. */
  readonly seq: number
  readonly code: string
  readonly message: string
}

/** A run of a list, whether it can be read or not. */
export type ListedRun = RunSummary | UnreadableRun
