import type { PendingApproval, RunId, RunState } from '@tallystick/core'
import { type DeferredCall, toRunTimes, type Tally, formatTodo } from '@tallystick/core/internal'
import {
  toCanonicalJson,
  type InboxEntry,
  type RequestAddition,
  type RunLabels,
} from '@tallystick/core/vocabulary'
import type { FoldedRun, RunOutline } from '@tallystick/ledger'
import {
  formatCost,
  formatCount,
  formatDuration,
  formatTable,
  formatTally,
  formatTime,
  formatUsage,
  joinFacts,
} from '../command/text.ts'
import { type RunStatusView, formatStatus, type Waits } from '../runs/run-status.ts'
import { formatOutline } from '../runs/run-story.ts'
import { formatOrigin, formatRelation } from './events.ts'

/** A run at one of its events. */
export interface ShownRun extends FoldedRun {
  /** The run's last event. */
  readonly maxSeq: number
  /** Its own waiting time: see `readWaitedTime`. */
  readonly waitedMs: number
  readonly waits: Waits
  readonly statusView: RunStatusView
  /** When it continues by itself, in milliseconds since 1970 UTC; absent if nothing is set for later. */
  readonly wakeAt?: number | undefined
  /** The status of the run today, when it is shown at an earlier event. */
  readonly now?: RunStatusView | undefined
  /** Its child runs, with their status today. */
  readonly childRuns: readonly ChildRun[]
  /** Commands that no process has taken up yet. */
  readonly inbox: readonly InboxEntry[]
}

export interface ChildRun extends RunStatusView {
  readonly runId: RunId
  readonly agent: string
}

export function formatFacts(shown: ShownRun): string {
  const { state, outline, maxSeq, waitedMs, waits, statusView, wakeAt, now, childRuns, inbox } = shown
  const { parent } = state
  const { startedAt, lastAt } = toRunTimes(state)
  const origin = parent?.relation === 'session' ? formatRelation(parent) : ''
  const partOf = [formatOrigin(state), origin].filter((text) => text !== '').join(', ')
  const waited = waitedMs > 0 ? `, of which it waited ${formatDuration(waitedMs)}` : ''
  const formatWaiting = ({ name, toolCallId, runId }: PendingApproval | DeferredCall, how: string) => [
    'waiting',
    `${name} ${toolCallId} ${how}${runId === state.runId ? '' : `, in run ${runId}`}`,
  ]
  const rows = [
    ['run', state.runId],
    ['agent', `${outline.agents.join(' → ')}, model ${state.definition.model.modelId}`],
    ...(partOf === '' ? [] : [['part of', partOf]]),
    ...(state.labels === undefined ? [] : [['labels', formatLabels(state.labels)]]),
    ...(state.deadlineAt === undefined ? [] : [['deadline', formatTime(state.deadlineAt)]]),
    ['status', formatStatus(statusView)],
    ...(wakeAt === undefined ? [] : [['continues', `by itself at ${formatTime(wakeAt)}`]]),
    ...(now === undefined ? [] : [['now', formatStatus(now)]]),
    ['phase', `${state.phase}, turn ${state.turn}, event ${state.seq} of ${maxSeq}, writer ${state.epoch}`],
    ['started', `${formatTime(startedAt)}, last event ${formatTime(lastAt)}`],
    ['took', `${formatDuration(Math.max(0, lastAt - startedAt))}${waited}`],
    ['used', formatUsed(state.totals)],
    ['tally', formatTally(toTally(outline))],
    ...outline.tools.map((tool, index) => [index === 0 ? 'calls' : '', formatOutline(tool)]),
    ...(outline.todo?.items.length
      ? formatTodo(outline.todo.items).map((line, index) => [index === 0 ? 'to do' : '', line])
      : []),
    ...(state.removedFrom === undefined
      ? []
      : [['content', `not all there, from event ${state.removedFrom} on; verify says why`]]),
    ...waits.approvals.map((call) => formatWaiting(call, toCanonicalJson(call.input))),
    ...waits.deferred.map((call) => formatWaiting(call, `continues outside as ${call.externalId}`)),
    ...childRuns.map(({ runId, agent, ...view }) => ['child', `${runId} ${agent}, ${formatStatus(view)}`]),
    ...inbox.map(({ command }) => [
      'inbox',
      `${formatInboxCommand(command)}, for the process that drives the run next`,
    ]),
  ]
  return formatTable(rows)
}

/** The two halves of the calls of a run, counted. */
export function toTally({ requests, results, open }: RunOutline): Tally {
  return { requests, results, open: open.map(({ toolCallId }) => toolCallId) }
}

function formatLabels({ workflowName, traceId, groupId, tags, metadata }: RunLabels): string {
  const named = Object.entries({ workflow: workflowName, trace: traceId, group: groupId })
  return [
    ...named.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`])),
    ...(tags === undefined ? [] : [`tags ${toCanonicalJson(tags)}`]),
    ...(metadata === undefined ? [] : [toCanonicalJson(metadata)]),
  ].join(', ')
}

function formatUsed({ turns, toolCalls, children, usage, costUsd }: RunState['totals']): string {
  const inChildren = `${formatCount(children.runs, 'child run')} with ${formatCount(children.turns, 'turn')} and ${formatCount(children.toolCalls, 'tool call')}`
  return joinFacts([
    formatCount(turns, 'turn'),
    formatCount(toolCalls, 'tool call'),
    children.runs === 0 ? '' : inChildren,
    formatUsage(usage),
    formatCost(costUsd),
  ])
}

function formatInboxCommand(command: InboxEntry['command']): string {
  const call = 'toolCallId' in command ? ` ${command.toolCallId}` : ''
  const by = 'by' in command && command.by !== undefined ? ` by ${command.by}` : ''
  return `${command.type}${call}${by}`
}

/** Names a field of the request that an option of the adapter sets, and the digest of its value. */
export function formatAddition({ option, field, digest }: RequestAddition): string {
  const where = option === 'headers' ? `the header ${field}` : field
  return `${where} (option ${option}, ${digest === undefined ? 'a credential' : `SHA-256 ${digest}`})`
}
