import { omitUndefined } from '@tallystick/core/internal'
import type { ModelSignal, ReplyPart, RequestedCall, StopReason } from '@tallystick/core/vocabulary'
import { getCount, getList, getObject, getText } from '../shared/json.ts'
import { readGivenInput, type ReplyReader } from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import {
  cutPrompt,
  createUnwrittenReplyError,
  type WireLine,
  type WireRequest,
  createWordlessReplyError,
} from './client.ts'

// The server keeps so many tokens at the front when it cuts a prompt.
const keptTokens = 4
// Hardly any text has fewer bytes a token.
const bytesPerTokenMin = 2.5

/**
 * True if the server answered a prompt that it had cut to fit. Servers since 2025 refuse instead, as the request asks. Older
 * ones leave only the token count as a sign: it equals the window, or the half of it that some servers cut to. A prompt
 * that was not cut may also have that half, so then its text must be long, too.
 */
export function wasPromptCut(body: WireRequest, promptTokens: number | undefined): boolean {
  const window = readContextTokens(body)
  if (body.truncate || promptTokens === undefined || window === undefined) return false
  if (promptTokens === window) return true
  const halfWindow = window - Math.floor((window - keptTokens) / 2)
  if (promptTokens !== halfWindow) return false
  const texts = body.messages.map(({ content, thinking = '', tool_calls = [] }) =>
    [content, thinking, ...tool_calls.map((call) => JSON.stringify(call.function))].join(''),
  )
  const bytes = new TextEncoder().encode(texts.join('') + JSON.stringify(body.tools ?? [])).length
  return bytes > bytesPerTokenMin * window
}

function readContextTokens({ options }: WireRequest): number | undefined {
  const window = options['num_ctx']
  return typeof window === 'number' ? window : undefined
}

/** The context of the server; `undefined` if it read a longer prompt than the request allows, as a cloud does. */
export function findContextTokens(body: WireRequest, promptTokens: number | undefined): number | undefined {
  const window = readContextTokens(body)
  return window !== undefined && promptTokens !== undefined && promptTokens > window ? undefined : window
}

/**
 * Translates `done_reason`. It is `stop` for calls, too, and `length` both for a reply of the requested length and for a full
 * context. `load` and `unload` answer a request that asked for nothing.
 */
function toStopReason(raw: string | undefined, hasCalls: boolean, isFull: boolean): StopReason {
  if (raw === 'stop') return hasCalls ? 'tool_use' : 'end'
  if (raw !== 'length') return 'other'
  return isFull ? 'context_exceeded' : 'max_tokens'
}

type Spoken = { readonly type: 'text' | 'reasoning'; readonly part: number; text: string }
type Called = RequestedCall & { readonly part: number }

/** Reads one reply, which only the last line ends. */
export class OllamaReader implements ReplyReader<WireLine> {
  readonly #names: ToolNames
  /** The request. The size of its context decides what an ending means. */
  readonly #body: WireRequest
  readonly #parts: (Spoken | Called)[] = []
  #started = false
  /** A line held a message. */
  #spoke = false
  finished = false

  /** `names` are those of the request. */
  constructor(names: ToolNames, body: WireRequest) {
    this.#names = names
    this.#body = body
  }

  /**
   * PROVIDER MAPPING: turns one line into signals. A line may hold thinking, text and calls at once, and be the last one. Usage
   * comes before a `ProviderError` for counts that say that the model never saw the whole prompt.
   */
  read(line: WireLine): Iterable<ModelSignal> {
    if (this.finished) return []
    const signals: ModelSignal[] = []
    if (!this.#started) {
      this.#started = true
      signals.push({ type: 'model_started', ...omitUndefined({ servedModel: getText(line, 'model') }) })
    }
    const message = getObject(line, 'message')
    if (message !== undefined) {
      this.#spoke = true
      this.#addWords('reasoning', getText(message, 'thinking'), signals)
      this.#addWords('text', getText(message, 'content'), signals)
      // Calls come complete, and each one is new: neither `index` nor id tells them apart.
      for (const wireCall of getList(message, 'tool_calls')) {
        const wireFunction = getObject(wireCall, 'function')
        const call: RequestedCall = {
          type: 'tool_call',
          providerCallId: getText(wireCall, 'id') ?? '',
          name: this.#names.fromWire(getText(wireFunction, 'name') ?? ''),
          // Usually an object. Some gateways write it as text, as another vendor's wire does.
          ...readGivenInput(wireFunction?.['arguments']),
        }
        const part = this.#parts.length
        this.#parts.push({ ...call, part })
        signals.push({ type: 'model_tool_request', part, call })
      }
    }
    return line.done === true ? this.#finish(line, signals) : signals
  }

  /** Text continues in the last part if that is of its kind: after a call, or other text, a new part begins. */
  #addWords(type: Spoken['type'], text: string | undefined, signals: ModelSignal[]): void {
    if (!text) return
    let open = this.#parts.at(-1)
    if (open?.type !== type) {
      open = { type, part: this.#parts.length, text: '' }
      this.#parts.push(open)
    }
    open.text += text
    signals.push({ type: type === 'text' ? 'model_text' : 'model_reasoning', part: open.part, text })
  }

  *#finish(line: WireLine, signals: readonly ModelSignal[]): Generator<ModelSignal, void> {
    yield* signals
    if (!this.#spoke) throw createWordlessReplyError()
    const [promptTokens, replyTokens] = [getCount(line, 'prompt_eval_count'), getCount(line, 'eval_count')]
    if (promptTokens !== undefined || replyTokens !== undefined) {
      const usage = omitUndefined({ inputTokens: promptTokens, outputTokens: replyTokens })
      // The other numbers are durations in nanoseconds.
      const raw = Object.fromEntries(Object.entries(line).filter(([, value]) => typeof value === 'number'))
      yield { type: 'model_usage', usage, raw }
    }
    const body = this.#body
    if (wasPromptCut(body, promptTokens)) throw cutPrompt(promptTokens, readContextTokens(body))
    const raw = getText(line, 'done_reason')
    if (this.#parts.length === 0 && raw !== 'stop' && raw !== 'length') throw createUnwrittenReplyError(raw)
    const contextTokens = findContextTokens(body, promptTokens) ?? Infinity
    const isFull = (promptTokens ?? NaN) + (replyTokens ?? NaN) >= contextTokens
    const hasCalls = this.#parts.some((part) => part.type === 'tool_call')
    this.finished = true
    yield {
      type: 'model_finished',
      stopReason: toStopReason(raw, hasCalls, isFull),
      ...omitUndefined({ rawStopReason: raw }),
      parts: this.#parts.map((part): ReplyPart => ({ ...part })),
    }
  }
}
