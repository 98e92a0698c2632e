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
  /** Calls that an outside system carries out. */
  readonly deferred: readonly (NamedCall & { readonly externalId: string })[]
  /** Calls whose work a child run does, `runId`. */
  readonly children: readonly (NamedCall & { readonly runId: RunId })[]
  /** The limit that the run met, and its maximum. */
  readonly limit?: { readonly limit: LimitName; readonly max?: number }
}

/** A run in a list. Facts only: no content. */
export interface RunSummary {
  readonly runId: RunId
  readonly status: Exclude<RunStatus, 'unreadable'>
  /** Of its last event. */
  readonly seq: number
  readonly turn: number
  /** Milliseconds since 1970 UTC, of its first and of its last event; of a fork, from when it was forked. */
  readonly startedAt: number
  readonly lastAt: number
  /** The active agent, and all agents of the run, in order. */
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
  /** The child runs, in order; in a fork also those of the source. */
  readonly childRunIds: readonly RunId[]
  readonly turns: number
  readonly toolCalls: number
  /** The totals of its child runs that have ended. Usage and cost of the run include them. */
  readonly children: Totals['children']
  readonly usage: Usage
  /** US dollars. */
  readonly costUsd?: number
}

/** A run that cannot be read, with the code and the message of the error. */
export interface UnreadableRun {
  readonly runId: RunId
  readonly status: 'unreadable'
  /** The last `seq`, as the store has it. */
  readonly seq: number
  readonly code: string
  readonly message: string
}

/** A run of a list, whether it can be read or not. */
export type ListedRun = RunSummary | UnreadableRun
