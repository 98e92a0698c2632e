import { digestOf, type JsonObject, type ToolCallId } from '@tallystick/core'
import { objectAt, textAt } from '../../shared/json/json-reading.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { KeptResponse } from '../client/wire.ts'
import type { Draft, Slot } from './rendered-message.ts'

/** What the whole request decides about its calls. */
export interface Binding {
  readonly ids: ReadonlyMap<ToolCallId, string>
  readonly names: ToolNames
}

/** The history from the place `from` on as input items: every call has its output behind it, in its own kind. */
export function inputOf(drafts: readonly Draft[], from: number, binding: Binding): readonly JsonObject[] {
  const calls = new Map<ToolCallId, Slot>()
  const programs = programsIn(drafts)
  const input: JsonObject[] = []
  drafts.forEach((draft, place) => {
    for (const slot of draft.slots) if (slot.role === 'call') calls.set(slot.toolCallId, slot)
    if (place >= from)
      input.push(...bound(draft, binding, calls).flatMap((item) => withProgram(item, programs)))
  })
  return withoutRepeatedIds(input)
}

/** The programs of the history, by which calls from within them, and what they gave, are known. */
function programsIn(drafts: readonly Draft[]): ReadonlySet<string | undefined> {
  const items = drafts.flatMap((draft) => draft.items)
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

const bounds = new WeakMap<Draft, { readonly key: string; readonly items: readonly JsonObject[] }>()

/** The draft's items with the ids, names and kinds of this request: the same items as last time, where these are. */
function bound(
  draft: Draft,
  { ids, names }: Binding,
  calls: ReadonlyMap<ToolCallId, Slot>,
): readonly JsonObject[] {
  if (draft.slots.length === 0) return draft.items
  const decided = draft.slots.map((slot) => ({
    id: ids.get(slot.toolCallId) ?? slot.toolCallId,
    name: names.toWire(slot.name),
    call: calls.get(slot.toolCallId),
  }))
  const key = decided.map(({ id, name, call }) => `${id} ${name} ${call?.kind ?? ''}`).join('\n')
  const before = bounds.get(draft)
  if (before?.key === key) return before.items
  const items = [...draft.items]
  draft.slots.forEach((slot, place) => {
    const { id, name, call } = decided[place]!
    const item = items[slot.at]!
    items[slot.at] = slot.role === 'result' ? answer(item, slot, id, call) : asked(item, slot, id, name)
  })
  bounds.set(draft, { key, items })
  return items
}

function asked(item: JsonObject, { kind }: Slot, id: string, name: string): JsonObject {
  // A question about a call to an MCP server is known by its own id, and names a tool that is not ours.
  return kind === 'mcp_approval_request' ? item : { ...item, call_id: id, name }
}

function answer(item: JsonObject, slot: Slot, id: string, call: Slot | undefined): JsonObject {
  switch (call?.kind) {
    case 'mcp_approval_request': {
      const reason = textAt(item, 'output')
      return {
        ...{ type: 'mcp_approval_response', approval_request_id: call.ownId ?? id },
        approve: slot.approved === true,
        ...(slot.approved !== true && reason && { reason }),
      }
    }
    case 'custom_tool_call':
      return { ...item, type: 'custom_tool_call_output', call_id: id }
    case 'function_call':
    case undefined:
      return { ...item, call_id: id, ...(call?.caller !== undefined && { caller: call.caller }) }
  }
}

/** A digest of the history up to each place: what a service that keeps conversations had seen by then. */
export function seenUpTo(drafts: readonly Draft[]): (place: number) => string {
  const seen = ['']
  return (place) => {
    for (let next = seen.length; next <= place; next++) {
      seen.push(chained(seen[next - 1]!, drafts[next - 1]!))
    }
    return seen[place]!
  }
}

const links = new WeakMap<Draft, { readonly before: string; readonly after: string }>()

/** One link, made once for a message as long as what stands before it stays the same. */
function chained(before: string, draft: Draft): string {
  const known = links.get(draft)
  if (known?.before === before) return known.after
  const after = digestOf([before, draft.digest()])
  links.set(draft, { before, after })
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
  drafts: readonly Draft[],
  seen: (place: number) => string,
  fits: (kept: KeptResponse, draft: Draft) => boolean,
): GoingOn | undefined {
  for (let place = drafts.length - 1; place >= 0; place--) {
    const draft = drafts[place]!
    const { kept } = draft
    // A reply that was shown to nobody again has nothing behind it that could be new.
    if (kept === undefined || !fits(kept, draft) || kept.seen !== seen(place)) continue
    return place + 1 < drafts.length ? { kept, from: place + 1 } : undefined
  }
  return undefined
}
