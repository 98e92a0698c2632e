import type { EventOf, FinishReason, RunLabels } from '@tallystick/core/vocabulary'
import { genAi, own } from '../conventions/names.ts'
import { costAttributes, type MaybeAttributes, type SpanError } from '../span/open-span.ts'
import { nameText } from '../span/span-text.ts'

/** The names that the application gave the run. Its metadata may say anything, and stays in the ledger. */
export function labelAttributes({ workflowName, groupId, traceId, tags }: RunLabels = {}): MaybeAttributes {
  return {
    [own.workflow]: textOrNone(workflowName),
    [own.group]: textOrNone(groupId),
    [own.trace]: textOrNone(traceId),
    [own.tags]: tags?.map(nameText),
  }
}

function textOrNone(text: string | undefined): string | undefined {
  return text === undefined ? undefined : nameText(text)
}

/** What a run used, child runs included; its number of model calls counts only its own. */
export function finishAttributes(
  { reason, turns, toolCalls, usage, costUsd }: EventOf<'run_finished'>,
  modelCalls: number,
): MaybeAttributes {
  return {
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    ...costAttributes(costUsd),
    [own.finishReason]: reason,
    [own.turns]: turns,
    [own.toolCalls]: toolCalls,
    [own.modelCalls]: modelCalls,
  }
}

/** The endings of a run that are no error. */
const endedWell: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** Returns the error that a run ended in; `undefined` where it ended well. */
export function finishError({ reason }: EventOf<'run_finished'>): SpanError | undefined {
  return endedWell.has(reason) ? undefined : { type: reason }
}
