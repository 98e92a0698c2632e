import type { Message } from '@tallystick/core'
import {
  type AssistantMessage,
  type AssistantPart,
  computeDigest,
  type Json,
  type JsonObject,
  type ToolCallId,
  type ToolCallPart,
  type ToolResult,
} from '@tallystick/core/vocabulary'
import { toItems, getNumber, getObject, getText, mendText } from '../shared/json.ts'
import { wrapInObject, readCallInput } from '../shared/reply.ts'
import { type Binding, isIdentifier } from '../shared/request.ts'
import { type Carried, carryParts, carryResult, type Carrier } from './request.ts'
import {
  api,
  type CallKind,
  type KeptResponse,
  readNativeKind,
  type OpaqueData,
  readOpaque,
} from './responses-wire.ts'

interface Rendering {
  readonly provider: string
  readonly modelId: string
  readonly binding: Binding
}

/** The part of a call of the history that its answer depends on. */
interface AskedCall {
  readonly kind: CallKind
  /** The id that this service gave the call itself. */
  readonly ownId: string | undefined
  /** The caller, for a call from within a program that the vendor runs. The answer has to repeat it. */
  readonly caller: Json | undefined
  /** Of a call of the shell: how many characters of its output the model asked for. */
  readonly maxOutput: number | undefined
}

/** Renders the history from the place `from` on: every call has its output after it, in its own kind. */
export function toInput(
  messages: readonly Message[],
  from: number,
  rendering: Rendering,
): readonly JsonObject[] {
  const calls = new Map<ToolCallId, AskedCall>()
  const { provider, binding } = rendering
  const carrier: Carrier = { provider, documentUrls: true, imageIds: true, audio: false }
  const items = messages.map((message): readonly JsonObject[] => {
    switch (message.role) {
      case 'user': {
        const pieces = carryParts(message.parts, carrier)
        const [first] = pieces
        const only = pieces.length === 1 && first?.kind === 'text' ? first.text : undefined
        // Without it the assistant would have the last word, which is another request.
        const content = first === undefined ? '(The message is empty.)' : (only ?? pieces.map(toInputPiece))
        return [{ role: 'user', content }]
      }
      case 'tool':
        return message.results.map((result) => renderResult(result, calls, carrier, binding))
      case 'assistant':
        return renderReply(message, calls, rendering)
    }
  })
  const programs = new Set(
    items
      .flat()
      .filter((item) => item['type'] === 'program')
      .map((item) => getText(item, 'call_id')),
  )
  // The vendor refuses two items of one id, which servers that begin to count again give; it needs none.
  const taken = new Set<string>()
  return items
    .slice(from)
    .flat()
    .flatMap((item) => withProgram(item, programs))
    .map((item) => {
      const { id, ...rest } = item
      if (typeof id !== 'string') return item
      const isRepeated = taken.has(id)
      taken.add(id)
      return isRepeated ? rest : item
    })
}

function toInputPiece(piece: Carried): JsonObject {
  switch (piece.kind) {
    case 'text':
      return { type: 'input_text', text: piece.text }
    case 'image':
      return { type: 'input_image', image_url: piece.url, detail: piece.detail ?? 'auto' }
    case 'pdf':
      return piece.data === undefined
        ? { type: 'input_file', file_url: piece.url ?? '' }
        : { type: 'input_file', filename: piece.name, file_data: piece.data }
    case 'kept':
      return piece.what === 'file'
        ? { type: 'input_file', file_id: piece.fileId }
        : { type: 'input_image', file_id: piece.fileId, detail: piece.detail ?? 'auto' }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: piece.data, format: piece.format } }
  }
}

/**
 * A compaction may have removed the program that an item came from: then the item becomes one like any other, and the
 * output of the program is left out.
 */
function withProgram(item: JsonObject, programs: ReadonlySet<string | undefined>): readonly JsonObject[] {
  if (item['type'] === 'program_output') return programs.has(getText(item, 'call_id')) ? [item] : []
  const caller = getObject(item, 'caller')
  if (getText(caller, 'type') !== 'program' || programs.has(getText(caller, 'caller_id'))) return [item]
  const { caller: _, ...direct } = item
  return [direct]
}

/** Renders the item that answers a call, in the form that the kind of the call demands. */
function renderResult(
  { toolCallId, outcome, content }: ToolResult,
  calls: ReadonlyMap<ToolCallId, AskedCall>,
  carrier: Carrier,
  { toWireId }: Binding,
): JsonObject {
  const pieces = carryResult(outcome, content, carrier)
  const texts = pieces.map((piece) => (piece.kind === 'text' ? piece.text : undefined))
  const output = texts.every((text) => text !== undefined) ? texts.join('\n\n') : pieces.map(toInputPiece)
  const isSuccess = outcome === 'success'
  const call_id = toWireId(toolCallId)
  const call = calls.get(toolCallId)
  const caller = call?.caller === undefined ? {} : { caller: call.caller }
  switch (call?.kind) {
    case 'mcp_approval_request':
      return {
        type: 'mcp_approval_response',
        approval_request_id: call.ownId ?? call_id,
        approve: isSuccess,
        ...(!isSuccess && typeof output === 'string' && output !== '' && { reason: output }),
      }
    case 'shell_call':
      return {
        ...{ type: 'shell_call_output', call_id },
        output: [toShellOutput(readWords(output), isSuccess)],
        ...(call.maxOutput !== undefined && { max_output_length: call.maxOutput }),
        ...caller,
      }
    case 'apply_patch_call':
      return {
        ...{ type: 'apply_patch_call_output', call_id },
        status: isSuccess ? 'completed' : 'failed',
        output: readWords(output),
        ...caller,
      }
    case 'custom_tool_call':
      return { type: 'custom_tool_call_output', call_id, output }
    case 'function_call':
    case undefined:
      return { type: 'function_call_output', call_id, output, ...caller }
  }
}

/** A tool may answer commands with an object of streams and an exit code, or only with text. */
function toShellOutput(words: string, isSuccess: boolean): JsonObject {
  const { input, malformed } = readCallInput(words)
  const said = malformed ? undefined : input
  const [stdout, stderr, code] = [
    getText(said, 'stdout'),
    getText(said, 'stderr'),
    getNumber(said, 'exitCode'),
  ]
  const isTold = stdout !== undefined || stderr !== undefined
  const exit_code = code ?? (isSuccess ? 0 : 1)
  return {
    stdout: isTold ? (stdout ?? '') : isSuccess ? words : '',
    stderr: isTold ? (stderr ?? '') : isSuccess ? '' : words,
    outcome: said?.['timedOut'] === true ? { type: 'timeout' } : { type: 'exit', exit_code },
  }
}

function readWords(output: Json | undefined): string {
  if (typeof output === 'string') return output
  return toItems(output)
    .map((piece) => getText(piece, 'text') ?? '(This wire carries no picture or file here.)')
    .join('\n\n')
}

/** Returns the digest of the history up to each place, which a service that keeps conversations had seen at that place. */
export function digestUpTo(messages: readonly Message[]): (place: number) => string {
  const seen = ['']
  return (place) => {
    for (let next = seen.length; next <= place; next++) {
      seen.push(computeDigest([seen[next - 1]!, computeDigest(messages[next - 1]!)]))
    }
    return seen[place]!
  }
}

/** Returns where the service keeps a reply, if a request to this model can continue from it. */
export function readKept(
  message: Message,
  { provider, modelId }: Pick<Rendering, 'provider' | 'modelId'>,
): KeptResponse | undefined {
  if (message.role !== 'assistant' || message.partial) return undefined
  const { model, parts, stopReason } = message
  const own = model.provider === provider && model.api === api && model.modelId === modelId
  if (!own || !['end', 'tool_use', 'refused'].includes(stopReason)) return undefined
  return parts.map((part) => readOpaque(part.opaque, provider)?.kept).find((kept) => kept !== undefined)
}

/** The reply that a request continues from, and the place from which the service has not seen the history. */
export interface GoingOn {
  readonly kept: KeptResponse
  readonly from: number
}

/**
 * Finds the last reply that the service keeps in `conversation`, and before which the history is still the same: a
 * compaction, or a fork that edits the past, changes it.
 */
export function findLastKept(
  messages: readonly Message[],
  conversation: string | undefined,
  seen: (place: number) => string,
  rendering: Rendering,
): GoingOn | undefined {
  for (let place = messages.length - 1; place >= 0; place--) {
    const message = messages[place]!
    const kept = readKept(message, rendering)
    if (kept === undefined || kept.conversation !== conversation || message.role !== 'assistant') continue
    // The service knows its calls by the ids that it gave them.
    const isKnown = message.parts.every(
      (part) =>
        part.type !== 'tool_call' || rendering.binding.toWireId(part.toolCallId) === part.providerCallId,
    )
    // A reply that no later request contained has nothing new after it.
    if (!isKnown || kept.seen !== seen(place)) continue
    return place + 1 < messages.length ? { kept, from: place + 1 } : undefined
  }
  return undefined
}

/**
 * A complete reply of the same model, with the proof of its reasoning, goes back as it came, ids included. Any other
 * loses its reasoning, the vendor's own items and all ids: the vendor refuses an id without the reasoning that it came
 * with, and reasoning without what followed it.
 */
function renderReply(
  { model, parts, partial }: AssistantMessage,
  calls: Map<ToolCallId, AskedCall>,
  rendering: Rendering,
): readonly JsonObject[] {
  const { provider, modelId } = rendering
  const own = model.provider === provider && model.api === api
  const restoredParts = parts.map((part): RestoredPart => ({
    part,
    providerState: own ? readOpaque(part.opaque, provider) : undefined,
  }))
  const genuine = own && !partial && model.modelId === modelId && restoredParts.every(isGenuine)
  const items: JsonObject[] = []
  for (const [place, one] of restoredParts.entries()) {
    const { part, providerState } = one
    const { part: partBefore, providerState: before } = restoredParts[place - 1] ?? {}
    // Two texts that are pieces of one message go back as one.
    const isText = part.type === 'text' && partBefore?.type === 'text'
    if (genuine && isText && providerState?.at !== undefined && providerState.at === before?.at) {
      const last = items.pop()!
      items.push({ ...last, content: [...(last['content'] as readonly JsonObject[]), renderContent(one)] })
      continue
    }
    if (part.type === 'tool_call') calls.set(part.toolCallId, readCall(part, providerState, genuine, own))
    const item = genuine ? renderGenuine(one, rendering) : renderPlain(one, rendering)
    if (item !== undefined) items.push(item)
  }
  // Reasoning must be followed by its outcome, so a reply that was cut right after it loses it as well.
  return items.slice(0, items.findLastIndex((item) => item['type'] !== 'reasoning') + 1)
}

interface RestoredPart {
  readonly part: AssistantPart
  readonly providerState: OpaqueData | undefined
}

/**
 * True for a part that can go back exactly as it came. Reasoning has to carry its proof, since the service keeps none, or
 * to be the reasoning itself, which servers that show it need back. A summary is neither.
 */
function isGenuine({ part, providerState }: RestoredPart): boolean {
  if (part.type === 'provider') return providerState !== undefined && !awaitsCaller(providerState.item)
  if (part.type !== 'reasoning') return true
  return !!getText(providerState?.item, 'encrypted_content') || isPlainReasoning(providerState?.item)
}

function isPlainReasoning(item: JsonObject | undefined): boolean {
  const content = item?.['content']
  return Array.isArray(content) && content.some((one: Json) => !!getText(one, 'text'))
}

function renderGenuine(restored: RestoredPart, rendering: Rendering): JsonObject | undefined {
  const { part, providerState } = restored
  if (providerState === undefined) return renderPlain(restored, rendering)
  const item = mendText(providerState.item)
  switch (part.type) {
    case 'text':
      return {
        ...withFittingId(item),
        type: 'message',
        role: 'assistant',
        content: [renderContent(restored)],
      }
    case 'reasoning': {
      // A server that shows reasoning has ids of its own kind.
      const fields = Object.entries(isPlainReasoning(item) ? item : withFittingId(item))
      return { summary: [], ...Object.fromEntries(fields.filter(([, value]) => value !== null)) }
    }
    case 'tool_call':
      // A question about a call to an MCP server is known by its own id, and names a tool that is not ours.
      if (isQuestion(providerState)) return item
      return readNativeKind(item)
        ? { ...item, call_id: rendering.binding.toWireId(part.toolCallId) }
        : { ...withFittingId(item), ...renderCall(part, providerState, rendering) }
    case 'provider':
      return item
  }
}

/** Renders a part without what only its own reply could prove. */
function renderPlain({ part, providerState }: RestoredPart, rendering: Rendering): JsonObject | undefined {
  switch (part.type) {
    case 'text': {
      if (part.text.trim() === '') return undefined
      const phase = providerState && getText(providerState.item, 'phase')
      const content = [{ type: 'output_text', text: part.text.toWellFormed() }]
      return { type: 'message', role: 'assistant', ...(phase && { phase }), content }
    }
    case 'tool_call': {
      if (isQuestion(providerState)) return providerState?.item
      const namespace = providerState && getText(providerState.item, 'namespace')
      return { ...renderCall(part, providerState, rendering), ...(namespace && { namespace }) }
    }
    case 'provider':
      return providerState && getText(providerState.item, 'type') === 'compaction'
        ? providerState.item
        : undefined
    case 'reasoning':
      return undefined
  }
}

/** True for the vendor's question whether it may call an MCP server, which has an answer of its own. */
function isQuestion(providerState: OpaqueData | undefined): boolean {
  return getText(providerState?.item, 'type') === 'mcp_approval_request'
}

function renderContent({ part, providerState }: RestoredPart): JsonObject {
  const text = part.type === 'text' ? part.text.toWellFormed() : ''
  const fields = providerState?.content ?? {}
  return fields['type'] === 'refusal'
    ? { ...fields, type: 'refusal', refusal: text }
    : { annotations: [], ...fields, type: 'output_text', text }
}

/** Renders a call of one of our tools. */
function renderCall(
  part: ToolCallPart,
  providerState: OpaqueData | undefined,
  { provider, binding: { toWireId, names } }: Rendering,
): JsonObject {
  const known = { call_id: toWireId(part.toolCallId), name: names.toWire(part.name) }
  const custom = readCustomInput(part, providerState)
  if (custom !== undefined) return { type: 'custom_tool_call', ...known, input: custom.toWellFormed() }
  // OpenAI takes any text; servers that render a template read it, and would refuse every later request.
  const unread = (text: string): string =>
    ['openai', 'azure'].includes(provider) ? text.toWellFormed() : wrapInObject(text.toWellFormed())
  return {
    type: 'function_call',
    ...known,
    arguments: part.malformed ? unread(part.malformed.text) : JSON.stringify(mendText(part.input)),
  }
}

/** Reads the text of a call of a custom tool. */
function readCustomInput({ input }: ToolCallPart, providerState: OpaqueData | undefined): string | undefined {
  return providerState?.field === undefined ? undefined : getText(input, providerState.field)
}

function readCall(
  part: ToolCallPart,
  providerState: OpaqueData | undefined,
  genuine: boolean,
  own: boolean,
): AskedCall {
  const item = providerState?.item
  const native = genuine && item && readNativeKind(item)
  const custom = readCustomInput(part, providerState) !== undefined
  return {
    kind: isQuestion(providerState)
      ? 'mcp_approval_request'
      : native
        ? `${native}_call`
        : custom
          ? 'custom_tool_call'
          : 'function_call',
    ownId: own ? part.providerCallId : undefined,
    caller: genuine ? (item?.['caller'] ?? undefined) : undefined,
    maxOutput: native === 'shell' ? getNumber(getObject(item, 'action'), 'max_output_length') : undefined,
  }
}

const idPrefixes: { readonly [type: string]: string } = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  custom_tool_call: 'ctc_',
}

/** Removes an id that the vendor would refuse; it needs none. */
function withFittingId(item: JsonObject): JsonObject {
  const { id, ...rest } = item
  const prefix = idPrefixes[getText(item, 'type') ?? '']
  const fits = typeof id === 'string' && isIdentifier(id, 64) && prefix !== undefined && id.startsWith(prefix)
  return fits ? item : rest
}

/**
 * True for an item that needs an answer in a special form, which this adapter never gives. The vendor refuses a request
 * that leaves it open.
 */
export function awaitsCaller(item: JsonObject): boolean {
  const type = getText(item, 'type')
  if (type === 'tool_search_call') return getText(item, 'execution') === 'client'
  return type === 'computer_call' || type === 'local_shell_call' || readNativeKind(item) !== undefined
}
