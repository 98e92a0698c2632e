import type { RunId } from '@tallystick/core'
import { toRunTimes, type Tally, type TodoItem, todoLines } from '@tallystick/core/internal'
import {
  canonicalJson,
  type InboxEntry,
  type RequestAddition,
  type RunLabels,
} from '@tallystick/core/vocabulary'
import type { FoldedRun, RunOutline } from '@tallystick/ledger'
import { counted, durationText, table, tallyText, timeText, usageText } from '../command/text.ts'
import { type RunStatusView, statusText, type Waits } from '../runs/run-status.ts'
import { outlineText } from '../runs/run-story.ts'
import { originText, relationText } from './events.ts'

/** The last list that is on record of what an agent has to do, in rows. */
function todoRows(items: readonly TodoItem[] = []): readonly (readonly string[])[] {
  return items.length === 0 ? [] : todoLines(items).map((line, index) => [index === 0 ? 'to do' : '', line])
}

/** A run at one of its events. */
export interface ShownRun extends FoldedRun {
  /** The run's last event. */
  readonly maxSeq: number
  /** How long it waited itself: see `waitedTime`. */
  readonly waitedMs: number
  readonly waits: Waits
  readonly statusView: RunStatusView
  /** The status of the run today, when it is shown at an earlier event. */
  readonly now?: RunStatusView | undefined
  /** Its child runs, with their status today. */
  readonly childRuns: readonly ChildRun[]
  /** Commands that no process has taken up yet. */
  readonly inbox: readonly InboxEntry[]
}

/** A child run. */
export interface ChildRun extends RunStatusView {
  readonly runId: RunId
  readonly agent: string
}

/** What is known of a run, in rows. */
export function factsText(shown: ShownRun): string {
  const { state, outline, maxSeq, waits, statusView, now, childRuns, inbox } = shown
  const { parent } = state
  const { startedAt, lastAt } = toRunTimes(state)
  const origin = parent?.relation === 'session' ? relationText(parent) : ''
  const partOf = [originText(state), origin].filter((text) => text !== '').join(', ')
  const rows = [
    ['run', state.runId],
    ['agent', `${outline.agents.join(' → ')}, model ${state.definition.model.modelId}`],
    ...(partOf === '' ? [] : [['part of', partOf]]),
    ...(state.labels === undefined ? [] : [['labels', labelsText(state.labels)]]),
    ...(state.deadlineAt === undefined ? [] : [['deadline', timeText(state.deadlineAt)]]),
    ['status', statusText(statusView)],
    ...(now === undefined ? [] : [['now', statusText(now)]]),
    ['phase', `${state.phase}, turn ${state.turn}, event ${state.seq} of ${maxSeq}, writer ${state.epoch}`],
    ['started', `${timeText(startedAt)}, last event ${timeText(lastAt)}`],
    ['took', tookText(shown)],
    ['used', usedText(shown)],
    ['tally', tallyText(tallyIn(outline))],
    ...outline.tools.map((tool, index) => [index === 0 ? 'calls' : '', outlineText(tool)]),
    ...todoRows(outline.todo?.items),
    ...(state.removedFrom === undefined ? [] : [['content', contentText(state.removedFrom)]]),
    ...waits.approvals.map(({ name, toolCallId, input, runId }) => [
      'waiting',
      `${name} ${toolCallId} ${canonicalJson(input)}${ofRun(runId, state.runId)}`,
    ]),
    ...waits.deferred.map(({ name, toolCallId, externalId, runId }) => [
      'waiting',
      `${name} ${toolCallId} continues outside as ${externalId}${ofRun(runId, state.runId)}`,
    ]),
    ...childRuns.map(({ runId, agent, ...childStatus }) => [
      'child',
      `${runId} ${agent}, ${statusText(childStatus)}`,
    ]),
    ...inbox.map(({ command }) => [
      'inbox',
      `${commandText(command)}, for the process that drives the run next`,
    ]),
  ]
  return table(rows)
}

/** The two halves of the calls of a run, counted. */
export function tallyIn({ requests, results, open }: RunOutline): Tally {
  return { requests, results, open: open.map(({ toolCallId }) => toolCallId) }
}

/** The names that an application knows a run by. */
function labelsText({ workflowName, traceId, groupId, tags, metadata }: RunLabels): string {
  const named = Object.entries({ workflow: workflowName, trace: traceId, group: groupId })
  return [
    ...named.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`])),
    ...(tags === undefined ? [] : [`tags ${canonicalJson(tags)}`]),
    ...(metadata === undefined ? [] : [canonicalJson(metadata)]),
  ].join(', ')
}

/** What was said is not all there, or not readable without keys. */
function contentText(removedFrom: number): string {
  return `not all there, from event ${removedFrom} on; verify says why`
}

function tookText({ state, waitedMs }: ShownRun): string {
  const { startedAt, lastAt } = toRunTimes(state)
  const waited = waitedMs > 0 ? `, of which it waited ${durationText(waitedMs)}` : ''
  return `${durationText(Math.max(0, lastAt - startedAt))}${waited}`
}

function usedText({ state }: ShownRun): string {
  const { turns, toolCalls, children, usage, costUsd } = state.totals
  const own = [counted(turns, 'turn'), counted(toolCalls, 'tool call')]
  const below =
    children.runs === 0
      ? []
      : [
          `${counted(children.runs, 'child run')} with ${counted(children.turns, 'turn')} and ${counted(children.toolCalls, 'tool call')}`,
        ]
  const cost = costUsd === undefined ? [] : [`$${costUsd.toFixed(4)}`]
  return [...own, ...below, usageText(usage), ...cost].join(', ')
}

function ofRun(runId: RunId, shown: RunId): string {
  return runId === shown ? '' : `, in run ${runId}`
}

function commandText(command: InboxEntry['command']): string {
  const call = 'toolCallId' in command ? ` ${command.toolCallId}` : ''
  const by = 'by' in command && command.by !== undefined ? ` by ${command.by}` : ''
  return `${command.type}${call}${by}`
}

/** Names a field that an adapter's option sets in the request, and the digest of its value. */
export function additionText({ option, field, digest }: RequestAddition): string {
  const where = option === 'headers' ? `the header ${field}` : field
  return `${where} (option ${option}, ${digest === undefined ? 'a credential' : `SHA-256 ${digest}`})`
}
