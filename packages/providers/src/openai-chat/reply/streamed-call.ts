import { isJsonObject } from '@tallystick/core/kit'
import type { Json, JsonObject, RequestedCall } from '@tallystick/core/vocabulary'
import { readCallInput } from '../../shared/reply/call-input.ts'
import type { CallContext } from '../../openai/request/call-context.ts'
import { restOf, textAt } from '../../shared/json/json-reading.ts'
import { opaqueOf, type ProviderState, type WireCallDelta } from '../client/wire.ts'

/** One call while it streams. */
export interface StreamedCall {
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
export function streamedCallFor(
  streamedCalls: readonly StreamedCall[],
  { id, index }: WireCallDelta,
): StreamedCall | undefined {
  const byIndex =
    index === undefined
      ? streamedCalls.at(-1)
      : streamedCalls.findLast((streamed) => streamed.index === index)
  if (!id) return byIndex
  const byId = streamedCalls.find((streamed) => streamed.id === id)
  if (byId !== undefined) {
    // One id for two calls: the index, where it says so, tells them apart.
    return index !== undefined && byId.index !== undefined && byId.index !== index ? byIndex : byId
  }
  return byIndex?.id === '' ? byIndex : undefined
}

/** Adds a piece to its call. Returns the new text of the input. */
export function extendCall(streamed: StreamedCall, delta: WireCallDelta): string {
  streamed.custom ||= delta.type === 'custom' || isJsonObject(delta.custom)
  const body = (streamed.custom ? delta.custom : delta.function) ?? {}
  // Some servers repeat it, others send it empty: the first one counts.
  streamed.id ||= textAt(delta, 'id') ?? ''
  streamed.name ||= textAt(body, 'name') ?? ''
  const rest = restOf(delta, ['index', 'id', 'type', 'function', 'custom'])
  streamed.fields = { ...streamed.fields, ...rest }
  const text = inputText(body[streamed.custom ? 'input' : 'arguments'])
  streamed.inputText += text
  return text
}

/** Some servers send an object where a text belongs. */
function inputText(given: Json | undefined): string {
  if (typeof given === 'string') return given
  return isJsonObject(given) ? JSON.stringify(given) : ''
}

/** Reads a call that is whole. */
export function callOf(streamed: StreamedCall, context: CallContext): RequestedCall {
  const name = context.toolName(streamed.name)
  const { providerState, ...read } = streamed.custom
    ? customInput(streamed, name, context)
    : jsonInput(streamed, name, context)
  const data: ProviderState = {
    ...providerState,
    ...(Object.keys(streamed.fields).length > 0 && { call: streamed.fields }),
  }
  return {
    type: 'tool_call',
    providerCallId: streamed.id,
    name,
    ...read,
    ...(Object.keys(data).length > 0 && { opaque: opaqueOf(context.provider, data) }),
  }
}

type Read = Pick<RequestedCall, 'input' | 'malformed'> & { readonly providerState: ProviderState }

function customInput({ inputText }: StreamedCall, name: string, { customField }: CallContext): Read {
  const field = customField(name)
  return { input: { [field]: inputText }, providerState: { field } }
}

function jsonInput({ inputText }: StreamedCall, name: string, { cleaned }: CallContext): Read {
  const read = readCallInput(inputText)
  if (read.malformed !== undefined) return { ...read, providerState: {} }
  return { input: cleaned(name, read.input), providerState: {} }
}
