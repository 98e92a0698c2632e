import { omitUndefined } from '@tallystick/core/kit'
import type { FinishReason } from '@tallystick/core/vocabulary'
import { approvalIdOf } from './approval-id.ts'
import { resultText, type MoveOf, type MoveTable } from './run-moves.ts'

/** A chunk of the AI SDK's UI message stream, version 1. */
export type UiMessageChunk = { readonly type: string; readonly [field: string]: unknown }

const finishReasons: Partial<Record<FinishReason, string>> = {
  answered: 'stop',
  output_truncated: 'length',
  refused: 'content-filter',
  guardrail: 'content-filter',
  model_failed: 'error',
}

/** Begins a message, or continues the one of that run. */
function startChunk(runId: string): UiMessageChunk {
  return { type: 'start', messageId: runId, messageMetadata: { runId } }
}

/** Maps each move of a run to the AI SDK. A message is a run, and its steps are the turns. */
export const uiMessageTable: MoveTable<UiMessageChunk> = {
  run_started: ({ runId }) => [startChunk(runId)],
  step_started: () => [{ type: 'start-step' }],
  part_started: ({ kind, partId }) => [{ type: `${kind}-start`, id: partId }],
  part_added: ({ kind, partId, text }) => [{ type: `${kind}-delta`, id: partId, delta: text }],
  part_ended: ({ kind, partId }) => [{ type: `${kind}-end`, id: partId }],
  step_withdrawn: () => [{ type: 'reset-step' }],
  call_started: ({ toolCallId, name: toolName }) => [
    { type: 'tool-input-start', toolCallId, toolName, dynamic: true },
  ],
  call_input_added: ({ toolCallId, text }) => [
    { type: 'tool-input-delta', toolCallId, inputTextDelta: text },
  ],
  call_requested: ({ toolCallId, name: toolName, input }) => [
    { type: 'tool-input-available', toolCallId, toolName, input, dynamic: true },
  ],
  approval_requested: ({ reason, ...question }) => [
    {
      type: 'tool-approval-request',
      toolCallId: question.toolCallId,
      approvalId: approvalIdOf(question),
      ...omitUndefined({ reason }),
    },
  ],
  approval_decided: ({ approved, reason, ...question }) => [
    {
      type: 'tool-approval-response',
      approvalId: approvalIdOf(question),
      approved,
      ...omitUndefined({ reason }),
    },
  ],
  call_progressed: ({ toolCallId, data }) => [
    { type: 'data-progress', data: { toolCallId, progress: data }, transient: true },
  ],
  call_ended: (move) => [endOfCall(move)],
  step_ended: () => [{ type: 'finish-step' }],
  run_reopened: ({ state }) => [startChunk(state.runId)],
  run_waits: () => [{ type: 'finish-step' }, { type: 'finish', finishReason: 'tool-calls' }],
  run_finished: endOfRun,
}

function endOfCall({ toolCallId, outcome, content }: MoveOf<'call_ended'>): UiMessageChunk {
  const text = resultText(content)
  if (outcome === 'denied') return { type: 'tool-output-denied', toolCallId }
  if (outcome !== 'success') return { type: 'tool-output-error', toolCallId, errorText: text }
  const isText = content.every(({ type }) => type === 'text')
  return { type: 'tool-output-available', toolCallId, output: isText ? text : content }
}

function endOfRun({
  runId,
  reason,
  detail,
  usage,
  costUsd,
}: MoveOf<'run_finished'>): readonly UiMessageChunk[] {
  const messageMetadata = { runId, reason, usage, ...omitUndefined({ detail, costUsd }) }
  const finish = { type: 'finish', finishReason: finishReasons[reason] ?? 'other', messageMetadata }
  if (reason === 'cancelled') return [{ type: 'abort', ...omitUndefined({ reason: detail }) }, finish]
  if (reason !== 'model_failed') return [finish]
  return [{ type: 'error', errorText: 'The model did not answer.' }, finish]
}
