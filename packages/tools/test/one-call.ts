import type { Tool } from '@tallystick/core'
import type { CallContext, JsonObject, ToolRun, ToolSignal } from '@tallystick/core/vocabulary'
import { joinText } from '@tallystick/core'
import { deriveToolCallId } from '@tallystick/core/vocabulary'
import type { RunId } from '@tallystick/core'
import { firstValueFrom, NEVER, toArray } from 'rxjs'

const runId = '01920000-0000-7000-8000-000000000001' as RunId

/** The call that the tests make. */
export const callContext: CallContext = {
  ...{ runId, turn: 3, toolCallId: deriveToolCallId(runId, 3, 1, 1) },
  context: { user: 'ada' },
}

/** One start of that call, which is never cancelled. */
export function toolRun(input: JsonObject, changes: Partial<ToolRun> = {}): ToolRun {
  return { ...callContext, input, attempt: 1, idempotencyKey: 'key-1', cancelled$: NEVER, ...changes }
}

/** All that a tool reports of one start, once it has completed. */
export function signalsOf(tool: Tool, input: JsonObject, changes?: Partial<ToolRun>): Promise<ToolSignal[]> {
  return firstValueFrom(tool.run(toolRun(input, changes)).pipe(toArray()))
}

/** How a start ended: its outcome, and its text. Fails when it is not the only ending, or not the last signal. */
export async function endingOf(
  tool: Tool,
  input: JsonObject,
  changes?: Partial<ToolRun>,
): Promise<{ readonly outcome: string; readonly text: string }> {
  const signals = await signalsOf(tool, input, changes)
  const endings = signals.filter((signal) => signal.type === 'tool_ended')
  const [ending] = endings
  if (!ending || endings.length !== 1 || ending !== signals.at(-1))
    throw new Error('not exactly one ending, at the end')
  return { outcome: ending.outcome, text: joinText(ending.content) }
}
