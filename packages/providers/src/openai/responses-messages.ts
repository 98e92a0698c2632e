import type { Message } from '@tallystick/core'
import {
  type AssistantMessage,
  type AssistantPart,
  digestOf,
  type Json,
  type JsonObject,
  type ToolCallId,
  type ToolCallPart,
} from '@tallystick/core/vocabulary'
import { itemsOf, numberAt, objectAt, textAt, wellFormed } from '../shared/json.ts'
import { inObject, readCallInput } from '../shared/reply.ts'
import { type Binding, bindItems, isIdentifier, type Placeholder } from '../shared/request.ts'
import {
  api,
  type CallKind,
  type KeptResponse,
  readNativeKind,
  type OpaqueData,
  readOpaque,
  resultItem,
  userItem,
} from './responses-wire.ts'

/** Renders the history from the place `from` on: every call has its output after it, in its own kind. */
export function toInput(
  renderedMessages: readonly RenderedMessage[],
  from: number,
  binding: Binding,
): readonly JsonObject[] {
  const calls = new Map<ToolCallId, PlacedCall>()
  const all = renderedMessages.flatMap((rendered) => rendered.items)
  const programs = new Set(
    all.filter((item) => item['type'] === 'program').map((item) => textAt(item, 'call_id')),
  )
  const input: JsonObject[] = []
  renderedMessages.forEach((rendered, place) => {
    for (const placeholder of rendered.placeholders)
      if (placeholder.role === 'call') calls.set(placeholder.toolCallId, placeholder)
    if (place >= from)
      input.push(...bindRendered(rendered, binding, calls).flatMap((item) => withProgram(item, programs)))
  })
  // The vendor refuses two items of one id, which servers that begin to count again give; it needs none.
  const taken = new Set<string>()
  return input.map((item) => {
    const { id, ...rest } = item
    if (typeof id !== 'string') return item
    const isRepeated = taken.has(id)
    taken.add(id)
    return isRepeated ? rest : item
  })
}

/**
 * A compaction may have removed the program that an item came from: then the item becomes one like any other, and the
 * output of the program is left out.
 */
function withProgram(item: JsonObject, programs: ReadonlySet<string | undefined>): readonly JsonObject[] {
  if (item['type'] === 'program_output') return programs.has(textAt(item, 'call_id')) ? [item] : []
  const caller = objectAt(item, 'caller')
  if (textAt(caller, 'type') !== 'program' || programs.has(textAt(caller, 'caller_id'))) return [item]
  const { caller: _, ...direct } = item
  return [direct]
}

function bindRendered(
  rendered: RenderedMessage,
  binding: Binding,
  calls: ReadonlyMap<ToolCallId, PlacedCall>,
): readonly JsonObject[] {
  const callOf = ({ toolCallId }: PlacedCall): PlacedCall | undefined => calls.get(toolCallId)
  return bindItems<JsonObject, PlacedCall>(
    rendered,
    binding,
    (item, placeholder, id, name) =>
      placeholder.role === 'result'
        ? bindResult(item, placeholder, id, callOf(placeholder))
        : bindCall(item, placeholder, id, name),
    (placeholder) => callOf(placeholder)?.kind,
  )
}

function bindCall(item: JsonObject, { kind }: PlacedCall, id: string, name: string): JsonObject {
  // A question about a call to an MCP server is known by its own id, and names a tool that is not ours.
  if (kind === 'mcp_approval_request') return item
  const isNative = kind === 'shell_call' || kind === 'apply_patch_call'
  return isNative ? { ...item, call_id: id } : { ...item, call_id: id, name }
}

function bindResult(
  item: JsonObject,
  placeholder: PlacedCall,
  id: string,
  call: PlacedCall | undefined,
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
        output: [toShellOutput(item['output'], placeholder.approved === true)],
        ...(call.maxOutput !== undefined && { max_output_length: call.maxOutput }),
        ...(call.caller !== undefined && { caller: call.caller }),
      }
    case 'apply_patch_call':
      return {
        ...{ type: 'apply_patch_call_output', call_id: id },
        status: placeholder.approved === true ? 'completed' : 'failed',
        output: readWords(item['output']),
        ...(call.caller !== undefined && { caller: call.caller }),
      }
    case 'custom_tool_call':
      return { ...item, type: 'custom_tool_call_output', call_id: id }
    case 'function_call':
    case undefined:
      return { ...item, call_id: id, ...(call?.caller !== undefined && { caller: call.caller }) }
  }
}

/** A tool may answer commands with an object of streams and an exit code, or only with text. */
function toShellOutput(output: Json | undefined, isSuccess: boolean): JsonObject {
  const words = readWords(output)
  const { input, malformed } = readCallInput(words)
  const said = malformed ? undefined : input
  const [stdout, stderr, code] = [textAt(said, 'stdout'), textAt(said, 'stderr'), numberAt(said, 'exitCode')]
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
  return itemsOf(output)
    .map((piece) => textAt(piece, 'text') ?? '(This wire carries no picture or file here.)')
    .join('\n\n')
}

/** The links of the chain of digests, each made once while the messages before it stay the same. */
const links = new WeakMap<RenderedMessage, { readonly before: string; readonly after: string }>()

/** Returns the digest of the history up to each place, which a service that keeps conversations had seen by then. */
export function seenUpTo(renderedMessages: readonly RenderedMessage[]): (place: number) => string {
  const seen = ['']
  return (place) => {
    for (let next = seen.length; next <= place; next++) {
      const [before, rendered] = [seen[next - 1]!, renderedMessages[next - 1]!]
      let link = links.get(rendered)
      if (link?.before !== before) {
        link = { before, after: digestOf([before, rendered.digest()]) }
        links.set(rendered, link)
      }
      seen.push(link.after)
    }
    return seen[place]!
  }
}

/** The reply that a request continues from, and the place from which the service has not seen the history. */
export interface GoingOn {
  readonly kept: KeptResponse
  readonly from: number
}

/**
 * Finds the last reply that the service keeps, that fits, and before which the history is still the same: a compaction, or
 * a fork that edits the past, changes it.
 */
export function findLastKept(
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

/** An item whose id, name or kind only the whole request decides. */
interface PlacedCall extends Placeholder {
  readonly role: 'call' | 'result'
  /** The id that this service gave the call itself. */
  readonly ownId?: string
  /** Of a call: what answers it has to look like. */
  readonly kind?: CallKind
  /** Of a call from within a program that the vendor runs: who called. The answer has to say so too. */
  readonly caller?: Json
  /** Of a call of the shell: how many characters of its output the model asked for. */
  readonly maxOutput?: number
  /** Of a result: whether the call went well, for a call that is a question. */
  readonly approved?: boolean
}

/** A message as it goes over the wire, except for what the whole request decides. Rendered once. */
export interface RenderedMessage {
  readonly items: readonly JsonObject[]
  readonly placeholders: readonly PlacedCall[]
  /** Where the service keeps this reply, if a request can continue from it. */
  readonly kept: KeptResponse | undefined
  /** SHA-256 over the message, in hex; made when it is first needed. */
  readonly digest: () => string
}

export function renderMessage(message: Message, provider: string, modelId: string): RenderedMessage {
  let digest: string | undefined
  const rendered = renderItems(message, provider, modelId)
  return { ...rendered, digest: () => (digest ??= digestOf(message)) }
}

type Rendered = Omit<RenderedMessage, 'digest'>

function renderItems(message: Message, provider: string, modelId: string): Rendered {
  switch (message.role) {
    case 'user':
      return { items: [userItem(message, provider)], placeholders: [], kept: undefined }
    case 'tool':
      return {
        items: message.results.map((result) => resultItem(result, provider)),
        placeholders: message.results.map(({ toolCallId, name, outcome }, at): PlacedCall => ({
          at,
          role: 'result',
          toolCallId,
          name,
          approved: outcome === 'success',
        })),
        kept: undefined,
      }
    case 'assistant':
      return renderReply(message, provider, modelId)
  }
}

/**
 * A complete reply of the same model, with the proof of its reasoning, goes back as it came, ids included. Any other
 * loses its reasoning, the vendor's own items and all ids: the vendor refuses an id without the reasoning that it came
 * with, and reasoning without what followed it.
 */
function renderReply(message: AssistantMessage, provider: string, modelId: string): Rendered {
  const { model, parts, partial, stopReason } = message
  const own = model.provider === provider && model.api === api
  const whole = own && !partial && model.modelId === modelId
  const restoredParts = parts.map((part): RestoredPart => ({
    part,
    provider,
    providerState: own ? readOpaque(part.opaque, provider) : undefined,
  }))
  const genuine = whole && restoredParts.every(isGenuine)
  const items: JsonObject[] = []
  const placeholders: PlacedCall[] = []
  for (const [place, one] of restoredParts.entries()) {
    if (genuine && continuesMessage(restoredParts[place - 1], one)) {
      const last = items.pop()!
      items.push({ ...last, content: [...(last['content'] as readonly JsonObject[]), renderContent(one)] })
      continue
    }
    const item = genuine ? renderGenuine(one) : renderPlain(one)
    if (item === undefined) continue
    if (one.part.type === 'tool_call') {
      placeholders.push({ ...callPlaceholder(one.part, one, genuine, own), at: items.length })
    }
    items.push(item)
  }
  const hasEnded = stopReason === 'end' || stopReason === 'tool_use' || stopReason === 'refused'
  const kept = restoredParts.find(({ providerState }) => providerState?.kept)?.providerState?.kept
  // Reasoning has to be followed by what it led to: a reply that was cut after it loses it, too.
  const end = items.findLastIndex((item) => item['type'] !== 'reasoning') + 1
  return { items: items.slice(0, end), placeholders, kept: whole && hasEnded ? kept : undefined }
}

interface RestoredPart {
  readonly part: AssistantPart
  readonly providerState: OpaqueData | undefined
  readonly provider: string
}

/** True for two texts that are pieces of one message: they go back as one. */
function continuesMessage(before: RestoredPart | undefined, { part, providerState }: RestoredPart): boolean {
  if (part.type !== 'text' || before?.part.type !== 'text') return false
  return providerState?.at !== undefined && providerState.at === before.providerState?.at
}

/**
 * True for a part that can go back exactly as it came. Reasoning has to carry its proof, since the service keeps none, or
 * to be the reasoning itself, which servers that show it need back. A summary is neither.
 */
function isGenuine({ part, providerState }: RestoredPart): boolean {
  if (part.type === 'provider') return providerState !== undefined && !awaitsCaller(providerState.item)
  if (part.type !== 'reasoning') return true
  return !!textAt(providerState?.item, 'encrypted_content') || isPlainReasoning(providerState?.item)
}

function isPlainReasoning(item: JsonObject | undefined): boolean {
  const content = item?.['content']
  return Array.isArray(content) && content.some((one: Json) => !!textAt(one, 'text'))
}

function renderGenuine(restored: RestoredPart): JsonObject | undefined {
  const { part, providerState } = restored
  if (providerState === undefined) return renderPlain(restored)
  const item = wellFormed(providerState.item)
  switch (part.type) {
    case 'text':
      return {
        ...withFittingId(item),
        type: 'message',
        role: 'assistant',
        content: [renderContent(restored)],
      }
    case 'reasoning':
      // A server that shows reasoning has ids of its own kind.
      return {
        summary: [],
        ...Object.fromEntries(
          Object.entries(isPlainReasoning(item) ? item : withFittingId(item)).filter(
            ([, value]) => value !== null,
          ),
        ),
      }
    case 'tool_call':
      return isQuestion(providerState) || readNativeKind(item)
        ? item
        : { ...withFittingId(item), ...renderCall({ ...restored, part }) }
    case 'provider':
      return item
  }
}

/** Renders a part without what only its own reply could prove. */
function renderPlain(restored: RestoredPart): JsonObject | undefined {
  const { part, providerState } = restored
  switch (part.type) {
    case 'text': {
      if (part.text.trim() === '') return undefined
      const phase = providerState && textAt(providerState.item, 'phase')
      const content = [{ type: 'output_text', text: part.text.toWellFormed() }]
      return { type: 'message', role: 'assistant', ...(phase && { phase }), content }
    }
    case 'tool_call': {
      if (isQuestion(providerState)) return providerState?.item
      const namespace = providerState && textAt(providerState.item, 'namespace')
      return { ...renderCall({ ...restored, part }), ...(namespace && { namespace }) }
    }
    case 'provider':
      return providerState && textAt(providerState.item, 'type') === 'compaction'
        ? providerState.item
        : undefined
    case 'reasoning':
      return undefined
  }
}

/** True for the vendor's question whether it may call an MCP server, which has an answer of its own. */
function isQuestion(providerState: OpaqueData | undefined): boolean {
  return textAt(providerState?.item, 'type') === 'mcp_approval_request'
}

function renderContent({ part, providerState }: RestoredPart): JsonObject {
  const text = part.type === 'text' ? part.text.toWellFormed() : ''
  const fields = providerState?.content ?? {}
  return fields['type'] === 'refusal'
    ? { ...fields, type: 'refusal', refusal: text }
    : { annotations: [], ...fields, type: 'output_text', text }
}

/** Renders a call in its own kind. The whole request decides its name and id. */
function renderCall({
  part,
  providerState,
  provider,
}: RestoredPart & { readonly part: ToolCallPart }): JsonObject {
  const custom = providerState?.field === undefined ? undefined : part.input[providerState.field]
  if (typeof custom === 'string') {
    return {
      type: 'custom_tool_call',
      call_id: part.toolCallId,
      name: part.name,
      input: custom.toWellFormed(),
    }
  }
  // OpenAI takes any text; servers that render a template read it, and would refuse every later request.
  const unread = (text: string): string =>
    ['openai', 'azure'].includes(provider) ? text.toWellFormed() : inObject(text.toWellFormed())
  return {
    ...{ type: 'function_call', call_id: part.toolCallId, name: part.name },
    arguments: part.malformed ? unread(part.malformed.text) : JSON.stringify(wellFormed(part.input)),
  }
}

function callPlaceholder(
  part: ToolCallPart,
  { providerState }: RestoredPart,
  genuine: boolean,
  own: boolean,
): Omit<PlacedCall, 'at'> {
  const { toolCallId, name, providerCallId } = part
  const item = providerState?.item
  const custom = providerState?.field !== undefined && typeof part.input[providerState.field] === 'string'
  const native = genuine && item && readNativeKind(item)
  const kind = isQuestion(providerState)
    ? 'mcp_approval_request'
    : native
      ? (`${native}_call` as const)
      : custom
        ? 'custom_tool_call'
        : 'function_call'
  const maxOutput = native === 'shell' ? numberAt(objectAt(item, 'action'), 'max_output_length') : undefined
  const caller = genuine ? item?.['caller'] : undefined
  return {
    role: 'call',
    toolCallId,
    name,
    kind,
    ...(own && { ownId: providerCallId }),
    ...(caller !== undefined && caller !== null && { caller }),
    ...(maxOutput !== undefined && { maxOutput }),
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
  const prefix = idPrefixes[textAt(item, 'type') ?? '']
  const fits = typeof id === 'string' && isIdentifier(id, 64) && prefix !== undefined && id.startsWith(prefix)
  return fits ? item : rest
}

/**
 * True for an item that needs an answer in a special form, which this adapter never gives. The vendor refuses a request
 * that leaves it open.
 */
export function awaitsCaller(item: JsonObject): boolean {
  const type = textAt(item, 'type')
  if (type === 'tool_search_call') return textAt(item, 'execution') === 'client'
  return type === 'computer_call' || type === 'local_shell_call' || readNativeKind(item) !== undefined
}
