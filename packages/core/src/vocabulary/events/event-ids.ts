import type { EventOf, EventType, RuntimeEvent } from './event.ts'
import { parseRunId, parseToolCallId } from '../values/ids.ts'

/** A field of an event that should hold an id, and holds something else. */
export interface IdFault {
  /** The path in the event, such as `parent.runId`. */
  readonly path: string
  readonly expected: 'a run id' | 'a tool call id'
  readonly found: unknown
}

type Check = (path: string, value: unknown) => IdFault | undefined

const runId: Check = (path, value) =>
  typeof value === 'string' && parseRunId(value) !== undefined
    ? undefined
    : { path, expected: 'a run id', found: value }

const toolCallId: Check = (path, value) =>
  typeof value === 'string' && parseToolCallId(value) !== undefined
    ? undefined
    : { path, expected: 'a tool call id', found: value }

/** A field that may be missing. */
function unless(check: Check): Check {
  return (path, value) => (value === undefined ? undefined : check(path, value))
}

const maybeRunId = unless(runId)
const maybeToolCallId = unless(toolCallId)

/** Each of a list; where content was taken away the list may be missing. */
function each(path: string, values: readonly unknown[] | undefined): IdFault | undefined {
  if (!Array.isArray(values)) return undefined
  const place = values.findIndex((value) => toolCallId(path, value) !== undefined)
  return place === -1 ? undefined : toolCallId(`${path}.${place}`, values[place])
}

/** The ids that events of a type carry beside their envelope. */
const inBody: { readonly [T in EventType]?: (event: EventOf<T>) => IdFault | undefined } = {
  run_started: ({ parent }) => (parent ? runId('parent.runId', parent.runId) : undefined),
  run_resumed: ({ inDoubt }) => each('inDoubt', inDoubt),
  tool_requests_collected: ({ calls }) =>
    each('calls', Array.isArray(calls) ? calls.map((call) => call?.toolCallId) : calls) ??
    each('calls.recorded', Array.isArray(calls) ? calls.flatMap((call) => call?.recorded ?? []) : calls),
  tool_started: ({ child, recorded }) => maybeRunId('child', child) ?? maybeToolCallId('recorded', recorded),
  tool_result: ({ child, reused }) =>
    (child ? runId('child.runId', child.runId) : undefined) ?? maybeToolCallId('reused', reused),
  tool_results_injected: ({ toolCallIds }) => each('toolCallIds', toolCallIds),
}

/**
 * Returns the first invalid id of an event: of its run, of its tool call, of the runs and calls that its body names.
 * `undefined` if every id is valid or missing. Stores check it on every event that they read, since ids become part
 * of file names, commands and generated code. Messages are content, and are not checked.
 */
export function idFaultOf(event: RuntimeEvent): IdFault | undefined {
  // Most events are deltas of a reply, and name no more than their run.
  const known = typeof event.runId === 'string' && parseRunId(event.runId) !== undefined
  const envelope = known ? undefined : runId('runId', event.runId)
  const call = event.toolCallId === undefined ? undefined : toolCallId('toolCallId', event.toolCallId)
  const fault = envelope ?? call
  if (fault !== undefined || !Object.hasOwn(inBody, event.type)) return fault
  return (inBody[event.type] as (event: RuntimeEvent) => IdFault | undefined)(event)
}
