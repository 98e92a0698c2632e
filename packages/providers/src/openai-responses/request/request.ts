import type { Message, ModelRequest } from '@tallystick/core'
import type { JsonObject, ProviderState } from '@tallystick/core/vocabulary'
import type { OpenAIWarning } from '../../openai/options/options.ts'
import { callContext } from '../../openai/request/call-context.ts'
import { fitSchema, isAnswerSchema, noAnswerSchema } from '../../openai/request/strict-schema.ts'
import { textAt } from '../../shared/json/json-reading.ts'
import { withAnswerSchema } from '../../shared/request/answer-instructions.ts'
import { callIds } from '../../shared/request/call-ids.ts'
import { memoized } from '../../shared/request/memoized.ts'
import { withProviderOptions } from '../../shared/request/provider-options.ts'
import { toolNames, warnOfNames } from '../../shared/request/tool-names.ts'
import type { KeptResponse, WireRequest } from '../client/wire.ts'
import { type Binding, type GoingOn, inputOf, lastKept, seenUpTo } from './history.ts'
import { type RenderedMessage, renderMessage } from './rendered-message.ts'
import type { ReplyContext } from './reply-context.ts'
import type { FallbackChanges, RenderSettings, RequestSettings } from './request-settings.ts'
import { toolFields } from './tools.ts'
import { writingFields } from './writing-fields.ts'

/** A request, ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  /** For the reply. */
  readonly context: ReplyContext
}

/** What the rendering of one request depends on. */
interface Rendering extends Pick<RenderSettings, 'warn'> {
  readonly changes?: FallbackChanges
}

/** Renders requests of one model. */
export type RequestRenderer = (request: ModelRequest, rendering: Rendering) => RenderedRequest

/**
 * A renderer that keeps what it made of each message, so that a turn costs what it adds. The same request gives the
 * same body, whatever was rendered before.
 */
export function requestRenderer(given: RequestSettings): RequestRenderer {
  const rendered = memoized((message: Message) => renderMessage(message, given.provider, given.modelId))
  return (request, { warn, changes = {} }) =>
    renderRequest(
      request,
      request.messages.map(rendered),
      { ...given, warn, state: stateIn(request, given) },
      changes,
    )
}

const maxIdentifierLength = 64
const heldFields = [
  'model',
  'input',
  'stream',
  'tools',
  'store',
  'previous_response_id',
  'conversation',
  'include',
]

function renderRequest(
  request: ModelRequest,
  renderedMessages: readonly RenderedMessage[],
  settings: RenderSettings,
  changes: FallbackChanges,
): RenderedRequest {
  const binding = bindingOf(request, renderedMessages, settings)
  const seen = seenUpTo(renderedMessages)
  const goingOn = changes.stateLost ? undefined : goingOnFrom(renderedMessages, seen, binding, settings)
  const state = stateOf(renderedMessages, goingOn, settings, changes)
  const input = inputOf(renderedMessages, goingOn?.from ?? 0, binding)
  const answer = answerFields(request, settings.warn)
  const { text, tools } = {
    text: textField(answer.format, settings),
    tools: toolFields(request, binding.names, settings, changes.refused ?? []),
  }
  const body: WireRequest = {
    model: settings.modelId,
    ...(answer.instructions.trim() !== '' && { instructions: answer.instructions.toWellFormed() }),
    input: input.length > 0 ? input : [{ role: 'user', content: '(The conversation begins here.)' }],
    stream: true,
    ...state,
    // Only what is stored can be sent for again.
    ...(settings.background && { background: true, store: true }),
    ...tools,
    ...text,
    ...writingFields(request, settings, changes),
  }
  const isKept = body.store && state.store
  const kept = (id: string) =>
    isKept ? keptResponse(id, seen(renderedMessages.length), body.conversation) : undefined
  return {
    body: withProviderOptions(body, request, { ...settings, held: heldFields }),
    context: {
      ...callContext(request, binding.names, settings),
      approvalTool: settings.approvalTool,
      nativeTools: settings.nativeTools,
      hasProviderTools: hasProviderTools(settings),
      kept,
      providerState: (id) => (isKept ? providerStateOf(id, body) : undefined),
    },
  }
}

function bindingOf(
  request: ModelRequest,
  renderedMessages: readonly RenderedMessage[],
  settings: RenderSettings,
): Binding {
  const calls = renderedMessages.flatMap(({ placeholders }) =>
    placeholders.filter((placeholder) => placeholder.role === 'call'),
  )
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    {
      maxLength: maxIdentifierLength,
      reserved: settings.providerTools
        .map((tool) => textAt(tool, 'name'))
        .filter((name) => name !== undefined),
    },
  )
  warnOfNames(request, names, settings.warn)
  return { ids: callIds(calls, maxIdentifierLength), names }
}

function goingOnFrom(
  renderedMessages: readonly RenderedMessage[],
  seen: (place: number) => string,
  { ids }: Binding,
  { state }: RenderSettings,
): GoingOn | undefined {
  if (state === 'none') return undefined
  const conversation = conversationIn(state)
  // The service knows its calls by the ids that it gave them.
  return lastKept(renderedMessages, seen, (kept, { placeholders }) => {
    const known = placeholders.every(({ toolCallId, ownId }) => ids.get(toolCallId) === ownId)
    return known && kept.conversation === conversation
  })
}

/**
 * The fields that say where the conversation is kept. A conversation that holds another past than ours cannot be gone
 * on with, and cannot be begun anew: such a request carries everything, and is kept nowhere.
 */
function stateOf(
  renderedMessages: readonly RenderedMessage[],
  goingOn: GoingOn | undefined,
  { state, warn }: RenderSettings,
  { stateLost }: FallbackChanges,
): Pick<WireRequest, 'store' | 'previous_response_id' | 'conversation'> {
  if (state === 'none') return { store: false }
  if (typeof state === 'object' && 'after' in state)
    return { store: true, previous_response_id: goingOn ? goingOn.kept.id : state.after }
  if (state === 'responses') {
    return { store: true, ...(goingOn && { previous_response_id: goingOn.kept.id }) }
  }
  const begun = renderedMessages.some(({ kept }) => kept?.conversation === state.conversation)
  if (!stateLost && (goingOn || !begun)) return { store: true, conversation: state.conversation }
  warn({
    what: 'state',
    message: `The conversation ${state.conversation} does not hold this history, so the request carried all of it.`,
  })
  return { store: false }
}

function hasProviderTools({ providerTools, extraBody }: RenderSettings): boolean {
  return providerTools.length > 0 || extraBody?.['tools'] !== undefined
}

/** Where the past is kept: as the request says, else as the model is set to. */
function stateIn({ providerState }: ModelRequest, { state }: RequestSettings): RequestSettings['state'] {
  const { conversationId, previousResponseId } = providerState ?? {}
  if (conversationId !== undefined) return { conversation: conversationId }
  return previousResponseId === undefined ? state : { after: previousResponseId }
}

function conversationIn(state: RequestSettings['state']): string | undefined {
  return typeof state === 'object' && 'conversation' in state ? state.conversation : undefined
}

function keptResponse(id: string, seen: string, conversation: string | undefined): KeptResponse {
  return { id, seen, ...(conversation !== undefined && { conversation }) }
}

/** What a run that continues from here is given. */
function providerStateOf(
  id: string,
  { store, conversation }: Pick<WireRequest, 'store' | 'conversation'>,
): ProviderState | undefined {
  if (!store) return undefined
  return conversation === undefined ? { previousResponseId: id } : { conversationId: conversation }
}

function textField(
  format: JsonObject | undefined,
  { verbosity }: RenderSettings,
): { readonly text?: JsonObject } {
  const text = { ...(format && { format }), ...(verbosity !== undefined && { verbosity }) }
  return Object.keys(text).length > 0 ? { text } : {}
}

/** How the model is asked for an answer of a schema: by the vendor's own way, or in the instructions. */
interface AnswerFields {
  readonly instructions: string
  readonly format?: JsonObject
}

function answerFields(
  { outputSchema, instructions }: ModelRequest,
  warn: (warning: OpenAIWarning) => void,
): AnswerFields {
  if (outputSchema === undefined) return { instructions }
  if (!isAnswerSchema(outputSchema)) {
    warn({ what: 'output_schema', message: noAnswerSchema })
    return { instructions: withAnswerSchema(instructions, outputSchema) }
  }
  const { schema, strict, notes } = fitSchema(outputSchema)
  for (const note of notes) warn({ what: 'output_schema', message: `The schema of the answer: ${note}.` })
  return { instructions, format: { type: 'json_schema', name: 'answer', schema, strict } }
}
