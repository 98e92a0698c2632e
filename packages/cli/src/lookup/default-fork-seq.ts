import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { ToolCallId } from '@tallystick/core/vocabulary'
import { commandLine } from '../command/command-context.ts'
import { CommandError } from '../command/exit-code.ts'
import type { Place } from '../view/text/next-commands.ts'

/** What decides where a fork begins, where no event is named. */
export interface ForkNeeds {
  /** The last event that both share. */
  readonly at?: number
  /** Calls that are to have other results, by an end of their ids. */
  readonly calls: readonly string[]
  /** Whether what waits for an approval is decided otherwise. */
  readonly decides: boolean
  /** Whether the last input is another: no later event allows that, and what is decided is asked again after it. */
  readonly replacesInput: boolean
}

/** Where a fork begins, and which calls were meant. */
export interface ForkPlace {
  readonly atSeq: number
  readonly toolCallIds: readonly ToolCallId[]
}

/**
 * Returns the event at which a fork begins: the named one, or the latest one that allows the edit: before the
 * edited results, after the last requested approval, or after the last input.
 */
export async function forkPlace(
  ledger: Ledger,
  runId: RunId,
  { at, calls, decides, replacesInput }: ForkNeeds,
  place: Place,
): Promise<ForkPlace> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) if (ofInterest.has(event.type)) events.push(event)
  const toolCallIds = calls.map((given) => callEnding(events, given, { runId, ...place }))
  return { atSeq: at ?? defaultSeq(events, toolCallIds, decides && !replacesInput), toolCallIds }
}

const ofInterest: ReadonlySet<RuntimeEvent['type']> = new Set([
  ...(['input_received', 'approval_requested', 'tool_started', 'tool_result'] as const),
])

function defaultSeq(
  events: readonly RuntimeEvent[],
  toolCallIds: readonly ToolCallId[],
  decides: boolean,
): number {
  const results = events.filter(
    ({ type, toolCallId }) => type === 'tool_result' && toolCallIds.some((id) => id === toolCallId),
  )
  const [first] = results
  if (first !== undefined) return first.seq - 1
  const lastOf = (type: RuntimeEvent['type']): number | undefined =>
    events.findLast((event) => event.type === type)?.seq
  if (toolCallIds.length > 0) return lastOf('tool_started') ?? 0
  return (decides ? lastOf('approval_requested') : undefined) ?? lastOf('input_received') ?? 0
}

function callEnding(
  events: readonly RuntimeEvent[],
  given: string,
  { runId, programName, ledgerPath }: Place & { readonly runId: RunId },
): ToolCallId {
  const started = events.flatMap(({ type, toolCallId }) =>
    type === 'tool_started' && toolCallId?.endsWith(given) ? [toolCallId] : [],
  )
  const [call, ...others] = new Set(started)
  if (call !== undefined && others.length === 0) return call
  const show = commandLine(programName, 'show', ledgerPath, runId)
  const what = call === undefined ? 'no tool call' : `${others.length + 1} tool calls`
  throw new CommandError(
    call === undefined ? 'not_found' : 'usage',
    `Run ${runId} has started ${what} whose id ends in ${given}. See its calls: ${show}`,
  )
}
