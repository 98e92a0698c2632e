import type { Usage } from '@tallystick/core'
import type {
  JsonObject,
  ModelSignal,
  ReplyPart,
  RequestedCall,
  StopReason,
} from '@tallystick/core/vocabulary'
import { countAt, objectAt, textAt } from '../shared/json.ts'
import { readGivenInput, RememberingReader, type ReplyReader } from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import { cutPrompt, unwrittenReply, type WireLine, type WireRequest, wordlessReply } from './client.ts'

// How many tokens at the very front the server keeps when it cuts a prompt.
const keptTokens = 4
// Hardly a text has fewer bytes than this to a token; the prompt of a request that fits its window has fewer in all.
const bytesPerTokenMin = 2.5

/**
 * Returns whether the server answered a prompt that it had cut to fit. Servers since 2025 refuse instead, as the
 * request asks. Older ones leave only the token count as a sign: it equals the window, or the half of it that some
 * servers cut to. A prompt that was not cut may also have that half, so then its text must be long too.
 */
export function promptWasCut(body: WireRequest, promptTokens: number | undefined): boolean {
  const window = contextTokensOf(body)
  if (body.truncate || promptTokens === undefined || window === undefined) return false
  if (promptTokens === window) return true
  const halfWindow = window - Math.floor((window - keptTokens) / 2)
  return promptTokens === halfWindow && promptBytes(body) > bytesPerTokenMin * window
}

/** The context that a request asked for, in tokens. */
function contextTokensOf({ options }: WireRequest): number | undefined {
  const window = options['num_ctx']
  return typeof window === 'number' ? window : undefined
}

/** The context that the server has, as far as one can tell: one that reads a longer prompt does as it likes (a cloud does). */
export function contextTokensAt(body: WireRequest, promptTokens: number | undefined): number | undefined {
  const window = contextTokensOf(body)
  return window !== undefined && promptTokens !== undefined && promptTokens > window ? undefined : window
}

function promptBytes({ messages, tools }: WireRequest): number {
  const texts = messages.map(({ content, thinking = '', tool_calls = [] }) =>
    [content, thinking, ...tool_calls.map((call) => JSON.stringify(call.function))].join(''),
  )
  return new TextEncoder().encode(texts.join('') + JSON.stringify(tools ?? [])).length
}

/** What the end of a reply is judged by. */
export interface Ending {
  readonly raw: string | undefined
  readonly hadCalls: boolean
  /** Tokens of the prompt and of the reply together, where both are known. */
  readonly tokens: number | undefined
  readonly contextTokens: number | undefined
}

/**
 * The vendor's `done_reason` in our words. It is `stop` for calls too, and `length` whether the asked-for length is
 * reached or the context is full. `load` and `unload` answer a request that asked for nothing.
 */
function stopReasonOf({ raw, hadCalls, tokens, contextTokens }: Ending): StopReason {
  if (raw === 'stop') return hadCalls ? 'tool_use' : 'end'
  if (raw !== 'length') return 'other'
  const full = tokens !== undefined && contextTokens !== undefined && tokens >= contextTokens
  return full ? 'context_exceeded' : 'max_tokens'
}

/** Tokens of the prompt and of the reply, where the server counted them. */
function usageOf(inputTokens: number | undefined, outputTokens: number | undefined): Usage {
  return {
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
  }
}

/** The numbers of the last line: tokens, and durations in nanoseconds. */
function countsOf(line: WireLine): JsonObject {
  return Object.fromEntries(Object.entries(line).filter(([, value]) => typeof value === 'number'))
}

type Spoken = { readonly type: 'text' | 'reasoning'; readonly part: number; text: string }
type Called = RequestedCall & { readonly part: number }

/** One reply while it streams: what has to be remembered between two lines. */
export interface Reply {
  readonly names: ToolNames
  /** What the reply answers: how large its context is decides what an ending means. */
  readonly body: WireRequest
  readonly parts: (Spoken | Called)[]
  started: boolean
  /** Whether any line held a message, as those of a chat do. */
  spoke: boolean
  /** Set by the last line. Whatever follows it is ignored. */
  finished: boolean
}

/** A reply of which nothing has come yet. `names` are those of the request that it answers. */
export function startReply(names: ToolNames, body: WireRequest): Reply {
  return { names, body, parts: [], started: false, spoke: false, finished: false }
}

/** The reply as the call reads it. Only the last line ends it. */
export function replyReader(names: ToolNames, body: WireRequest): ReplyReader<WireLine> {
  return new RememberingReader(startReply(names, body), readLine)
}

/**
 * PROVIDER MAPPING: one line of the wire to the signals that follow from it, `reply` being carried along. A line may hold
 * thinking, words and calls at once, and be the last one besides. Usage comes before a `ProviderError` is thrown, where the
 * counts of the last line say that the model never saw the whole prompt.
 */
export function readLine(reply: Reply, line: WireLine): Iterable<ModelSignal> {
  if (reply.finished) return []
  const signals = reply.started ? [] : [startOf(reply, line)]
  const message = objectAt(line, 'message')
  if (message !== undefined) addMessage(reply, message, signals)
  return line.done === true ? withEnd(signals, reply, line) : signals
}

function addMessage(reply: Reply, message: JsonObject, signals: ModelSignal[]): void {
  reply.spoke = true
  addWords(reply, 'reasoning', textAt(message, 'thinking'), signals)
  addWords(reply, 'text', textAt(message, 'content'), signals)
  const calls = message['tool_calls']
  if (Array.isArray(calls)) for (const call of calls) signals.push(addCall(reply, call))
}

function* withEnd(
  signals: readonly ModelSignal[],
  reply: Reply,
  line: WireLine,
): Generator<ModelSignal, void> {
  yield* signals
  yield* finish(reply, line)
}

function startOf(reply: Reply, line: WireLine): ModelSignal {
  reply.started = true
  const servedModel = textAt(line, 'model')
  return { type: 'model_started', ...(servedModel !== undefined && { servedModel }) }
}

/** Words continue in the last part as long as that is of their kind: after a call, or other words, a new part begins. */
function addWords(
  reply: Reply,
  type: Spoken['type'],
  text: string | undefined,
  signals: ModelSignal[],
): void {
  if (text === undefined || text === '') return
  let open = reply.parts.at(-1)
  if (open?.type !== type) {
    open = { type, part: reply.parts.length, text: '' }
    reply.parts.push(open)
  }
  open.text += text
  signals.push({ type: type === 'text' ? 'model_text' : 'model_reasoning', part: open.part, text })
}

/** A call comes whole, and each is one more: neither its `index` nor its id tells it from the ones before. */
function addCall(reply: Reply, wireCall: unknown): ModelSignal {
  const wireFunction = objectAt(wireCall, 'function')
  const call: RequestedCall = {
    type: 'tool_call',
    providerCallId: textAt(wireCall, 'id') ?? '',
    name: reply.names.fromWire(textAt(wireFunction, 'name') ?? ''),
    // An object as a rule. Some servers in between write it as text, as another vendor's wire does.
    ...readGivenInput(wireFunction?.['arguments']),
  }
  const part = reply.parts.length
  reply.parts.push({ ...call, part })
  return { type: 'model_tool_request', part, call }
}

function* finish(reply: Reply, line: WireLine): Generator<ModelSignal, void> {
  const { body, parts } = reply
  if (!reply.spoke) throw wordlessReply()
  const counts = countsOf(line)
  const [promptTokens, replyTokens] = [
    countAt(line, 'prompt_eval_count'),
    countAt(line, 'eval_count'),
  ] as const
  if (promptTokens !== undefined || replyTokens !== undefined) {
    yield { type: 'model_usage', usage: usageOf(promptTokens, replyTokens), raw: counts }
  }
  if (promptWasCut(body, promptTokens)) throw cutPrompt(promptTokens, contextTokensOf(body))
  const raw = textAt(line, 'done_reason')
  if (parts.length === 0 && raw !== 'stop' && raw !== 'length') throw unwrittenReply(raw)
  const tokens =
    promptTokens === undefined || replyTokens === undefined ? undefined : promptTokens + replyTokens
  const hadCalls = parts.some((part) => part.type === 'tool_call')
  reply.finished = true
  yield {
    type: 'model_finished',
    stopReason: stopReasonOf({ raw, hadCalls, tokens, contextTokens: contextTokensAt(body, promptTokens) }),
    ...(raw !== undefined && { rawStopReason: raw }),
    parts: parts.map((part): ReplyPart => ({ ...part })),
  }
}
