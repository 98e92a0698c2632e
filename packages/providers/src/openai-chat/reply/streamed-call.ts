import type { Json, JsonObject, RequestedCall } from '@tallystick/core'
import { readCallInput } from '../../openai/reply/call-input.ts'
import type { CallContext } from '../../openai/request/call-context.ts'
import { isJsonObject, restOf, textAt } from '../../shared/json/json-reading.ts'
import { opaqueOf, type WireCallDelta, type WireMemory } from '../client/wire.ts'

/** One call while it streams. */
export interface CallSlot {
  readonly part: number
  readonly index: number | undefined
  id: string
  name: string
  custom: boolean
  inputText: string
  /** What else the server says of it: signatures, for instance. */
  fields: JsonObject
}

/**
 * The call that a piece belongs to; `undefined` when it begins a new one. The id decides before the index: some servers
 * give every call the index 0, or leave it out, or count from 1, or give an index again.
 */
export function slotFor(slots: readonly CallSlot[], { id, index }: WireCallDelta): CallSlot | undefined {
  const byIndex = index === undefined ? slots.at(-1) : slots.findLast((slot) => slot.index === index)
  if (!id) return byIndex
  const byId = slots.find((slot) => slot.id === id)
  if (byId !== undefined) {
    // One id for two calls: the index, where it says so, tells them apart.
    return index !== undefined && byId.index !== undefined && byId.index !== index ? byIndex : byId
  }
  return byIndex?.id === '' ? byIndex : undefined
}

/** Folds a piece into its call, and answers what of the input is new. */
export function extendSlot(slot: CallSlot, delta: WireCallDelta): string {
  slot.custom ||= delta.type === 'custom' || isJsonObject(delta.custom)
  const body = (slot.custom ? delta.custom : delta.function) ?? {}
  // Said again and again by some, empty by others: the first one stands.
  slot.id ||= textAt(delta, 'id') ?? ''
  slot.name ||= textAt(body, 'name') ?? ''
  const rest = restOf(delta, ['index', 'id', 'type', 'function', 'custom'])
  slot.fields = { ...slot.fields, ...rest }
  const text = inputText(body[slot.custom ? 'input' : 'arguments'])
  slot.inputText += text
  return text
}

/** Some servers send an object where a text belongs. */
function inputText(given: Json | undefined): string {
  if (typeof given === 'string') return given
  return isJsonObject(given) ? JSON.stringify(given) : ''
}

/** Reads a call that is whole. */
export function callOf(slot: CallSlot, context: CallContext): RequestedCall {
  const name = context.toolName(slot.name)
  const { memory, ...read } = slot.custom ? customInput(slot, name, context) : jsonInput(slot, name, context)
  const data: WireMemory = {
    ...memory,
    ...(Object.keys(slot.fields).length > 0 && { call: slot.fields }),
  }
  return {
    ...{ type: 'tool_call', providerCallId: slot.id, name, ...read },
    ...(Object.keys(data).length > 0 && { opaque: opaqueOf(context.provider, data) }),
  }
}

type Read = Pick<RequestedCall, 'input' | 'malformed'> & { readonly memory: WireMemory }

function customInput({ inputText }: CallSlot, name: string, { customField }: CallContext): Read {
  const field = customField(name)
  return { input: { [field]: inputText }, memory: { field } }
}

function jsonInput({ inputText }: CallSlot, name: string, { cleaned }: CallContext): Read {
  const read = readCallInput(inputText)
  if (read.malformed !== undefined) return { ...read, memory: {} }
  return { input: cleaned(name, read.input), memory: {} }
}
