import { digestOf, type Json, type JsonObject, type ToolCallId } from '@tallystick/core/vocabulary'
import { itemsOf, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { readCallInput } from '../../shared/reply/call-input.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { KeptResponse } from '../client/wire.ts'
import type { Placeholder, RenderedMessage } from './rendered-message.ts'

/** What the whole request decides about its calls. */
export interface Binding {
  readonly ids: ReadonlyMap<ToolCallId, string>
  readonly names: ToolNames
}

/** The history from the place `from` on as input items: every call has its output after it, in its own kind. */
export function inputOf(
  renderedMessages: readonly RenderedMessage[],
  from: number,
  binding: Binding,
): readonly JsonObject[] {
  const calls = new Map<ToolCallId, Placeholder>()
  const programs = programsIn(renderedMessages)
  const input: JsonObject[] = []
  renderedMessages.forEach((rendered, place) => {
    for (const placeholder of rendered.placeholders)
      if (placeholder.role === 'call') calls.set(placeholder.toolCallId, placeholder)
    if (place >= from)
      input.push(...bound(rendered, binding, calls).flatMap((item) => withProgram(item, programs)))
  })
  return withoutRepeatedIds(input)
}

/** The programs of the history, by which calls from within them, and what they gave, are known. */
function programsIn(renderedMessages: readonly RenderedMessage[]): ReadonlySet<string | undefined> {
  const items = renderedMessages.flatMap((rendered) => rendered.items)
  return new Set(items.filter((item) => item['type'] === 'program').map((item) => textAt(item, 'call_id')))
}

/**
 * An item from within a program that is no longer there, since a compaction cut it off, becomes one like any other; and what
 * only that program could have given is left out.
 */
function withProgram(item: JsonObject, programs: ReadonlySet<string | undefined>): readonly JsonObject[] {
  if (item['type'] === 'program_output') return programs.has(textAt(item, 'call_id')) ? [item] : []
  const caller = objectAt(item, 'caller')
  if (textAt(caller, 'type') !== 'program' || programs.has(textAt(caller, 'caller_id'))) return [item]
  const { caller: _, ...direct } = item
  return [direct]
}

/** The vendor refuses two items of one id, which servers that begin to count again give; and it needs none. */
function withoutRepeatedIds(input: readonly JsonObject[]): readonly JsonObject[] {
  const taken = new Set<string>()
  return input.map((item) => {
    const id = textAt(item, 'id')
    if (id === undefined || !taken.has(id)) {
      if (id !== undefined) taken.add(id)
      return item
    }
    const { id: _, ...rest } = item
    return rest
  })
}

const bounds = new WeakMap<RenderedMessage, { readonly key: string; readonly items: readonly JsonObject[] }>()

/** The rendered message's items with the ids, names and kinds of this request: the same items as last time, where these are. */
function bound(
  rendered: RenderedMessage,
  { ids, names }: Binding,
  calls: ReadonlyMap<ToolCallId, Placeholder>,
): readonly JsonObject[] {
  if (rendered.placeholders.length === 0) return rendered.items
  const decided = rendered.placeholders.map((placeholder) => ({
    id: ids.get(placeholder.toolCallId) ?? placeholder.toolCallId,
    name: names.toWire(placeholder.name),
    call: calls.get(placeholder.toolCallId),
  }))
  const key = decided.map(({ id, name, call }) => `${id} ${name} ${call?.kind ?? ''}`).join('\n')
  const before = bounds.get(rendered)
  if (before?.key === key) return before.items
  const items = [...rendered.items]
  rendered.placeholders.forEach((placeholder, place) => {
    const { id, name, call } = decided[place]!
    const item = items[placeholder.at]!
    items[placeholder.at] =
      placeholder.role === 'result' ? answer(item, placeholder, id, call) : asked(item, placeholder, id, name)
  })
  bounds.set(rendered, { key, items })
  return items
}

function asked(item: JsonObject, { kind }: Placeholder, id: string, name: string): JsonObject {
  // A question about a call to an MCP server is known by its own id, and names a tool that is not ours.
  if (kind === 'mcp_approval_request') return item
  const isNative = kind === 'shell_call' || kind === 'apply_patch_call'
  return isNative ? { ...item, call_id: id } : { ...item, call_id: id, name }
}

function answer(
  item: JsonObject,
  placeholder: Placeholder,
  id: string,
  call: Placeholder | undefined,
): JsonObject {
  switch (call?.kind) {
    case 'mcp_approval_request': {
      const reason = textAt(item, 'output')
      return {
        type: 'mcp_approval_response',
        approval_request_id: call.ownId ?? id,
        approve: placeholder.approved === true,
        ...(placeholder.approved !== true && reason && { reason }),
      }
    }
    case 'shell_call':
      return {
        ...{ type: 'shell_call_output', call_id: id },
        output: [shellOutput(item['output'], placeholder.approved === true)],
        ...(call.maxOutput !== undefined && { max_output_length: call.maxOutput }),
        ...(call.caller !== undefined && { caller: call.caller }),
      }
    case 'apply_patch_call':
      return {
        ...{ type: 'apply_patch_call_output', call_id: id },
        status: placeholder.approved === true ? 'completed' : 'failed',
        output: wordsOf(item['output']),
        ...(call.caller !== undefined && { caller: call.caller }),
      }
    case 'custom_tool_call':
      return { ...item, type: 'custom_tool_call_output', call_id: id }
    case 'function_call':
    case undefined:
      return { ...item, call_id: id, ...(call?.caller !== undefined && { caller: call.caller }) }
  }
}

/** What a tool answered to commands: the streams and the exit code, where it says them as an object, or else only words. */
function shellOutput(output: Json | undefined, isSuccess: boolean): JsonObject {
  const words = wordsOf(output)
  const said = parsedObject(words)
  const [stdout, stderr, code] = [textAt(said, 'stdout'), textAt(said, 'stderr'), numberAt(said, 'exitCode')]
  const isTold = stdout !== undefined || stderr !== undefined
  const exit_code = code ?? (isSuccess ? 0 : 1)
  return {
    stdout: isTold ? (stdout ?? '') : isSuccess ? words : '',
    stderr: isTold ? (stderr ?? '') : isSuccess ? '' : words,
    outcome: said?.['timedOut'] === true ? { type: 'timeout' } : { type: 'exit', exit_code },
  }
}

function wordsOf(output: Json | undefined): string {
  if (typeof output === 'string') return output
  return itemsOf(output)
    .map((piece) => textAt(piece, 'text') ?? '(This wire carries no picture or file here.)')
    .join('\n\n')
}

function parsedObject(text: string): JsonObject | undefined {
  const { input, malformed } = readCallInput(text)
  return malformed ? undefined : input
}

/** A digest of the history up to each place: what a service that keeps conversations had seen by then. */
export function seenUpTo(renderedMessages: readonly RenderedMessage[]): (place: number) => string {
  const seen = ['']
  return (place) => {
    for (let next = seen.length; next <= place; next++) {
      seen.push(chained(seen[next - 1]!, renderedMessages[next - 1]!))
    }
    return seen[place]!
  }
}

const links = new WeakMap<RenderedMessage, { readonly before: string; readonly after: string }>()

/** One link, made once for a message as long as the messages before it stay the same. */
function chained(before: string, rendered: RenderedMessage): string {
  const known = links.get(rendered)
  if (known?.before === before) return known.after
  const after = digestOf([before, rendered.digest()])
  links.set(rendered, { before, after })
  return after
}

/** From where on the service has not seen the history, and where it keeps what it has seen. */
export interface GoingOn {
  readonly kept: KeptResponse
  readonly from: number
}

/**
 * The last reply that the service keeps, that can be gone on from, and before which the history still is what it was:
 * after a compaction, or in a fork that edits the past, it is not. `fits` says what may be gone on from.
 */
export function lastKept(
  renderedMessages: readonly RenderedMessage[],
  seen: (place: number) => string,
  fits: (kept: KeptResponse, rendered: RenderedMessage) => boolean,
): GoingOn | undefined {
  for (let place = renderedMessages.length - 1; place >= 0; place--) {
    const rendered = renderedMessages[place]!
    const { kept } = rendered
    // A reply that no later request contained has nothing new after it.
    if (kept === undefined || !fits(kept, rendered) || kept.seen !== seen(place)) continue
    return place + 1 < renderedMessages.length ? { kept, from: place + 1 } : undefined
  }
  return undefined
}
