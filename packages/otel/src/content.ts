import type { Message, RuntimeEvent } from '@tallystick/core'
import { evolve, toModelRequest, type RunState } from '@tallystick/core/machine'
import type {
  AssistantPart,
  EventOf,
  FilePart,
  ImagePart,
  Json,
  ResultPart,
  TextPart,
} from '@tallystick/core/vocabulary'
import { finishReason, genAi, own } from './conventions.ts'
import { toContentText, type MaybeAttributes, nameText } from './span.ts'

/** Longer texts are cut: one image, or one file that a tool has read, must not lose a span. */
const maxText = 16_384

/** Of a longer history, only the latest messages are in a span. */
const maxHistory = 262_144

/** The content of a run in the form of the conventions. */
export class RunContent {
  #state: RunState | undefined
  readonly #inputs = new Map<string, Json>()
  #isFolded = true

  /** A run that this release cannot fold still has its spans, without what its models were shown. */
  fold(event: RuntimeEvent): void {
    if (!this.#isFolded) return
    try {
      this.#state = evolve(this.#state, event)
    } catch {
      this.#isFolded = false
    }
  }

  /** Remembers the input that a call will run with: the latest one that is given. */
  note({ toolCallId, input }: { readonly toolCallId: string; readonly input?: Json }): void {
    if (input !== undefined) this.#inputs.set(toolCallId, input)
  }

  /** The request of the model call that has just started. */
  request(): MaybeAttributes {
    const state = this.#isFolded ? this.#state : undefined
    if (state?.phase !== 'streaming') return {}
    const { instructions, messages, tools } = toModelRequest(state)
    const definitions = tools.map(({ name, description, inputSchema }) => ({
      type: 'function',
      name,
      description,
      parameters: inputSchema,
    }))
    return {
      [genAi.instructions]: JSON.stringify([{ type: 'text', content: toContentText(instructions, maxText) }]),
      [genAi.inputMessages]: toHistoryText(messages),
      [genAi.toolDefinitions]: definitions.length > 0 ? toJsonText(definitions) : undefined,
    }
  }

  reply({ parts, stopReason }: EventOf<'assistant_message_finished'>): MaybeAttributes {
    const reply = {
      role: 'assistant',
      parts: parts.flatMap(toParts),
      finish_reason: finishReason(stopReason),
    }
    return { [genAi.outputMessages]: JSON.stringify([reply]) }
  }

  decision(event: EventOf<'approval_decided'>): MaybeAttributes {
    this.note(event)
    return { [own.decidedBy]: toContentText(event.by, maxText) }
  }

  result({ toolCallId, content }: EventOf<'tool_result'>): MaybeAttributes {
    const input = this.#inputs.get(toolCallId)
    this.#inputs.delete(toolCallId)
    return {
      [genAi.toolArguments]: input === undefined ? undefined : toJsonText(input),
      [genAi.toolResult]: toContentText(toResultText(content), maxText),
    }
  }
}

function toHistoryText(messages: readonly Message[]): string {
  const texts: string[] = []
  let length = 0
  for (const message of messages.toReversed()) {
    const text = JSON.stringify(toMessage(message))
    length += text.length
    if (length > maxHistory) break
    texts.unshift(text)
  }
  return `[${texts.join(',')}]`
}

function toMessage(message: Message): Json {
  if (message.role === 'tool') {
    const parts = message.results.map(({ toolCallId, content }) => ({
      type: 'tool_call_response',
      id: toolCallId,
      response: toContentText(toResultText(content), maxText),
    }))
    return { role: 'tool', parts }
  }
  return { role: message.role, parts: message.parts.flatMap(toParts) }
}

function toParts(part: AssistantPart | ResultPart): readonly Json[] {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return [{ type: part.type, content: toContentText(part.text, maxText) }]
    case 'tool_call':
      return [
        {
          type: 'tool_call',
          id: part.toolCallId,
          name: nameText(part.name),
          arguments: toArguments(part.input),
        },
      ]
    case 'provider':
      return [{ type: 'provider', kind: part.kind }]
    case 'image':
    case 'file':
      return [toFile(part)]
  }
}

/** A file by its address or its id. Its bytes stay in the ledger. */
function toFile({ type, mediaType, url, providerFile }: ImagePart | FilePart): Json {
  const what = { modality: type === 'image' ? 'image' : 'document', mime_type: mediaType }
  if (url !== undefined) return { type: 'uri', ...what, uri: toContentText(url, maxText) }
  if (providerFile) return { type: 'file', ...what, file_id: providerFile.id }
  return { type: 'blob', ...what, content: '' }
}

function toResultText(content: readonly (TextPart | ImagePart | FilePart)[]): string {
  const onlyText = content.every(({ type }) => type === 'text')
  return onlyText
    ? content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
    : JSON.stringify(content.flatMap(toParts))
}

/** As an object, as the conventions ask, or as the beginning of its text if it is too long. */
function toArguments(input: Json): Json {
  return JSON.stringify(input).length > maxText ? toJsonText(input) : input
}

function toJsonText(value: Json): string {
  return toContentText(JSON.stringify(value), maxText)
}

export interface ContentOption {
  /**
   * True if spans hold messages, instructions, inputs and results. Default: as the environment variable
   * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says; `false` without it.
   */
  readonly content?: boolean | undefined
}

const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'

/** The values of the variable that ask for content in spans; `true` is that of older instrumentations. */
const asking: ReadonlySet<string> = new Set(['span_only', 'span_and_event', 'true'])

/** Returns whether spans hold content. */
export function holdsContent({ content }: ContentOption): boolean {
  const { process } = globalThis as {
    readonly process?: { readonly env: Readonly<Record<string, string | undefined>> }
  }
  return content ?? asking.has((process?.env[variable] ?? '').toLowerCase())
}
