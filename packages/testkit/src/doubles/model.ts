import { Observable, type Subscriber } from 'rxjs'
import { type Model, type ModelRequest, ProviderError, type Usage } from '@tallystick/core'
import {
  failureClasses,
  omitUndefined,
  option,
  type Schema,
  type OrUndefined,
  requireOptions,
} from '@tallystick/core/internal'
import {
  type FailureClass,
  type JsonObject,
  type ModelContext,
  type ModelRefusal,
  type ModelSignal,
  type ReplyPart,
  type RequestedCall,
  type StopReason,
  stopReasons,
} from '@tallystick/core/vocabulary'

const {
  anyObject,
  anyText,
  fields,
  filledText,
  isThenable,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  trueOrFalse,
  valueThat,
} = option

/**
 * The answer of a scripted model to one call.
 *
 * @example scriptedModel([{ toolCalls: [{ name: 'get_weather', input: { city: 'Seoul' } }] }, { text: '18 degrees.' }])
 */
export interface ScriptedReply {
  readonly reasoning?: string | undefined
  readonly text?: string | undefined
  readonly toolCalls?: readonly ScriptedCall[] | undefined
  readonly usage?: OrUndefined<Usage> | undefined
  /** Tokens of the conversation, if they differ from the billed ones in `usage`. */
  readonly contextTokens?: number | undefined
  /** Default: `tool_use` with calls, `end` without. */
  readonly stopReason?: StopReason | undefined
  /** With the stop reason `refused`: what the vendor says about the refusal. */
  readonly refusal?: ModelRefusal | undefined
  /** Fails with a `ProviderError` of this class, after the rest of the step has streamed. */
  readonly fail?: FailureClass | undefined
  /** How long the provider asks to wait before the next attempt, in milliseconds. */
  readonly retryAfterMs?: number | undefined
  /** The reply ends only when this has settled, so that a test can act while the model is at work. */
  readonly until?: Promise<unknown> | undefined
  /** How long the reply takes before its end, in milliseconds of the runtime's clock. */
  readonly delayMs?: number | undefined
  /** Streams the rest of the step, and never ends. */
  readonly hang?: boolean | undefined
}

/** A tool call in a scripted reply. */
export interface ScriptedCall {
  /** The id that the provider claims; providers repeat theirs, so a script may too. */
  readonly id?: string | undefined
  readonly name: string
  /** An object; or the text of an input that is not a JSON object. */
  readonly input: JsonObject | string
}

/** One step: a reply, or a function that makes it from the request that the model was sent. */
export type ScriptedStep = ScriptedReply | ((request: ModelRequest) => ScriptedReply)

/** A model that plays a script, one step a call. It says that it is one: its provider is `scripted`. */
export interface ScriptedModel extends Model {
  /** The requests that it got, in order. */
  readonly requests: readonly ModelRequest[]
  /** Calls that were cancelled before their end. */
  readonly abandoned: number
  /** Throws when steps are left over. */
  assertComplete(): void
}

const retryable: ReadonlySet<FailureClass> = new Set([
  'rate_limited',
  'overloaded',
  'timeout',
  'network',
  'truncated',
  'server',
  'empty_reply',
  'interrupted',
])

const call = fields<ScriptedCall>(
  {
    id: maybe(anyText),
    name: anyText,
    input: valueThat(
      'an object, or a text that is not JSON of one',
      (value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
    ),
  },
  { toolName: 'name', args: 'input', arguments: 'input' },
)

// Any number: a script may play a provider whose report is not a count.
const tokens = maybe(valueThat('a number', (value) => typeof value === 'number'))

const scriptedUsage = fields<OrUndefined<Usage>>(
  {
    inputTokens: tokens,
    outputTokens: tokens,
    cacheReadTokens: tokens,
    cacheWriteTokens: tokens,
    cacheWriteLongTokens: tokens,
    reasoningTokens: tokens,
    webSearches: tokens,
  },
  { input: 'inputTokens', output: 'outputTokens' },
)

const scriptedReply = fields<ScriptedReply>(
  {
    reasoning: maybe(anyText),
    text: maybe(anyText),
    toolCalls: maybe(listOf(call)),
    usage: maybe(scriptedUsage),
    stopReason: maybe(oneOf(stopReasons)),
    refusal: maybe(anyObject),
    fail: maybe(oneOf(failureClasses)),
    retryAfterMs: maybe(numberFrom(0)),
    contextTokens: maybe(numberFrom(0)),
    until: maybe(valueThat('a promise', isThenable)),
    delayMs: maybe(numberFrom(0)),
    hang: maybe(trueOrFalse),
  },
  { content: 'text', calls: 'toolCalls', error: 'fail' },
)

const scriptedStep: Schema = (value) => (typeof value === 'function' ? undefined : scriptedReply(value))

/**
 * Makes a model that plays `steps`, one a call; a call after the last step fails with `invalid_request`. A last step `{}`,
 * a reply without a word, is also what its retries get.
 */
export function scriptedModel(steps: readonly ScriptedStep[], modelId = 'scripted-1'): ScriptedModel {
  requireOptions('scriptedModel', listOf(scriptedStep), steps, 'steps')
  requireOptions('scriptedModel', filledText, modelId, 'the model id')
  const last = steps.at(-1)
  const emptyLast = typeof last === 'object' && Object.keys(last).length === 0 ? last : undefined
  const requests: ModelRequest[] = []
  let abandoned = 0
  return {
    provider: 'scripted',
    api: 'script',
    modelId,
    requests,
    get abandoned() {
      return abandoned
    },
    assertComplete() {
      if (requests.length < steps.length) {
        throw new Error(`The script has ${steps.length} steps, and ${requests.length} were played.`)
      }
    },
    stream(request, context) {
      return new Observable((subscriber) => {
        const index = requests.length
        requests.push(request)
        const step = steps[index] ?? emptyLast
        let ended = false
        play({ step, request, index, context }, subscriber, () => {
          ended = true
        }).catch((error: unknown) => subscriber.error(error))
        return () => {
          if (!ended) abandoned++
        }
      })
    },
  }
}

async function play(
  {
    step,
    request,
    index,
    context,
  }: { step: ScriptedStep | undefined; request: ModelRequest; index: number; context: ModelContext },
  subscriber: Subscriber<ModelSignal>,
  end: () => void,
): Promise<void> {
  const fail = (error: unknown): void => {
    end()
    subscriber.error(error)
  }
  if (step === undefined)
    return fail(createFailure('invalid_request', `The script has no step ${index + 1}.`))
  const reply = typeof step === 'function' ? step(request) : step
  requireOptions(`step ${index + 1} of scriptedModel`, scriptedReply, reply)
  const { delayMs } = reply
  for (const signal of playReply(reply, index)) {
    await pause()
    if (signal.type === 'model_finished') {
      await reply.until
      if (delayMs !== undefined)
        await new Promise<void>((resolve) => void context.clock.schedule(delayMs, resolve))
    }
    if (subscriber.closed) return
    subscriber.next(signal)
  }
  if (reply.hang) return
  await Promise.resolve()
  if (reply.fail)
    return fail(createFailure(reply.fail, `Scripted failure: ${reply.fail}.`, reply.retryAfterMs))
  end()
  subscriber.complete()
}

/** A ledger in memory has recorded a signal within so many turns of promises. */
const turnsToRecord = 24

/** Lets each signal be shown before the next, and commands come in between, as they do on a wire. */
async function pause(): Promise<void> {
  for (let turn = 0; turn < turnsToRecord; turn++) await Promise.resolve()
}

function createFailure(failureClass: FailureClass, message: string, retryAfterMs?: number): ProviderError {
  return new ProviderError({
    class: failureClass,
    message,
    retryable: retryable.has(failureClass),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

function* playReply(reply: ScriptedReply, index: number): Generator<ModelSignal> {
  const parts: ReplyPart[] = []
  yield { type: 'model_started', providerMessageId: `scripted-${index + 1}`, servedModel: 'scripted' }
  for (const type of ['reasoning', 'text'] as const) {
    const whole = reply[type]
    if (!whole) continue
    const part = parts.length
    parts.push({ part, type, text: whole })
    for (const text of cutText(whole)) yield { type: `model_${type}`, part, text }
  }
  for (const [ordinal, call] of (reply.toolCalls ?? []).entries()) {
    const part = parts.length
    const requested = toRequestedCall(call, `scripted_${index + 1}_${ordinal + 1}`)
    yield* toCallSignals(requested, part)
    parts.push({ part, ...requested })
  }
  if (reply.usage) {
    yield {
      type: 'model_usage',
      usage: omitUndefined({ ...reply.usage }),
      ...omitUndefined({ contextTokens: reply.contextTokens }),
    }
  }
  if (reply.fail || reply.hang) return
  const stopReason = reply.stopReason ?? (reply.toolCalls?.length ? 'tool_use' : 'end')
  yield { type: 'model_finished', stopReason, parts, ...omitUndefined({ refusal: reply.refusal }) }
}

function* toCallSignals(call: RequestedCall, part: number): Generator<ModelSignal> {
  for (const text of cutText(call.malformed?.text ?? JSON.stringify(call.input))) {
    yield { type: 'model_tool_input', part, name: call.name, text }
  }
  yield { type: 'model_tool_request', part, call }
}

function toRequestedCall({ id, name, input }: ScriptedCall, ownId: string): RequestedCall {
  const call = { type: 'tool_call', providerCallId: id ?? ownId, name } as const
  if (typeof input !== 'string') return { ...call, input }
  return { ...call, input: {}, malformed: { text: input, error: 'not JSON' } }
}

/** A text as a wire would bring it: in a few pieces. */
function cutText(text: string): readonly string[] {
  const size = Math.max(1, Math.ceil(text.length / 3))
  const found: string[] = []
  for (let start = 0; start < text.length; start += size) found.push(text.slice(start, start + size))
  return found
}
