import { ConfigurationError, type Model, type ModelRequest, ProviderError } from '@tallystick/core'
import { calledModel, isJsonObject, requireOptions } from '@tallystick/core/internal'
import {
  canonicalJson,
  digestOf,
  type Json,
  type JsonObject,
  type ModelFailure,
  type ModelRef,
  type ModelSignal,
} from '@tallystick/core/vocabulary'
import { Observable, type Subscriber } from 'rxjs'
import { listAt, numberAt, objectAt, textAt } from '../shared/json.ts'
import { readRecording, recordingWriter, type ReplayOrder, replayOrder, withoutRunIds } from './file.ts'
import { type PlayedModelOptions, playedOptions, requireRecordingOptions } from './recording-fetch.ts'

/** A request by the digests of its parts: enough to find its answer and to say where another differs. */
interface RequestDigests {
  readonly instructions: string
  readonly messages: readonly string[]
  readonly tools: string
  /** Of everything else. */
  readonly settings: string
}

/** How a call ended: with the end of the reply, with a failure, or given up by who had asked. */
type CallEnding =
  | { readonly type: 'completed' }
  | { readonly type: 'failed'; readonly failure: ModelFailure }
  | { readonly type: 'abandoned' }

/** One call of a model, and what it reported. */
interface RecordedCall {
  /** Its place among the calls, as they began. */
  readonly number: number
  readonly model: ModelRef
  readonly request: RequestDigests
  readonly signals: readonly ModelSignal[]
  readonly ending: CallEnding
}

/** The digests of a request, in which the ids that a run gave its tool calls count for nothing. */
function digestsOf({ instructions, messages, tools, ...settings }: ModelRequest): RequestDigests {
  const digest = (value: unknown): string => digestOf(withoutRunIds(canonicalJson(value as Json)))
  return {
    instructions: digest(instructions),
    messages: messages.map(digest),
    tools: digest(tools),
    settings: digest(settings),
  }
}

/** What two requests share that are to get the same reply. */
function callKey(request: RequestDigests): string {
  return digestOf(request)
}

/** A call as a line of a recording holds it. */
function callLine({ number, model, request, signals, ending }: RecordedCall): JsonObject {
  const { provider, api, modelId } = model
  return {
    number,
    model: { provider, api, modelId },
    request: { ...request },
    signals: signals as unknown as readonly Json[],
    ending: ending as unknown as JsonObject,
  }
}

/** Returns a line of a recording as a call; `undefined` for any other line. */
function callOf(line: JsonObject): RecordedCall | undefined {
  const [model, request, ending] = ['model', 'request', 'ending'].map((key) => objectAt(line, key))
  const signals = listAt(line, 'signals')
  if (numberAt(line, 'number') === undefined || textAt(model, 'modelId') === undefined) return undefined
  if (
    textAt(request, 'tools') === undefined ||
    textAt(ending, 'type') === undefined ||
    !signals.every(isJsonObject)
  )
    return undefined
  return line as unknown as RecordedCall
}

/**
 * The same model, which keeps what it reports to each call in `file`, with the digests of what it was asked, for
 * `playedModel`. For any model; the bytes of its wire are kept by `recordingFetch`. The recording
 * that was there is replaced when the first call has ended.
 *
 * Throws `ConfigurationError` for what is no model, and where the file cannot be written.
 */
export function recordModel(model: Model, file: string): Model {
  requireOptions('recordModel', calledModel, model, 'the model')
  const writer = recordingWriter(file, 'calls')
  const { provider, api, modelId, pinnedOptions, maxWebSearches } = model
  return {
    provider,
    api,
    modelId,
    ...(pinnedOptions !== undefined && { pinnedOptions }),
    ...(maxWebSearches !== undefined && { maxWebSearches }),
    stream: (request, context) =>
      new Observable((subscriber) => {
        const number = writer.next()
        const signals: ModelSignal[] = []
        let kept = false
        const keep = (ending: CallEnding): void => {
          if (kept) return
          kept = true
          writer.write(callLine({ number, model, request: digestsOf(request), signals, ending }))
        }
        subscriber.add(
          model.stream(request, context).subscribe({
            next: (signal) => {
              signals.push(signal)
              subscriber.next(signal)
            },
            error: (error: unknown) => {
              // Another error is a mistake in the model, which a recording would only repeat.
              if (error instanceof ProviderError) keep({ type: 'failed', failure: error.toFailure() })
              kept = true
              subscriber.error(error)
            },
            complete: () => {
              keep({ type: 'completed' })
              subscriber.complete()
            },
          }),
        )
        return () => keep({ type: 'abandoned' })
      }),
  }
}

/** A model that plays a recording, under the name of the model that was recorded. */
export interface PlayedModel extends Model {
  /** What it was asked, in order. */
  readonly requests: readonly ModelRequest[]
  /** Throws `ConfigurationError` when recorded calls are left over. */
  assertComplete(): void
}

/**
 * A model that reports what the recording of `recordModel` in `file` holds, each call once. A request that has no
 * recorded reply fails with `invalid_request`, which says where it differs from what was recorded. A call that was
 * given up continues to where it was, and then waits.
 *
 * Throws `ConfigurationError` where the file is not there, or is no such recording.
 */
export function playedModel(file: string, options: PlayedModelOptions = {}): PlayedModel {
  requireRecordingOptions('playedModel', playedOptions, { file, options })
  const calls = inOrder(
    readRecording(file, 'calls').map((line, place) => {
      const call = callOf(line)
      if (call === undefined) {
        throw new ConfigurationError(
          `Line ${place + 2} of the recording ${file} is no call of a model, so the recording is damaged. Record it anew.`,
        )
      }
      return call
    }),
  ).map((call) => ({ key: callKey(call.request), entry: call }))
  const order = replayOrder(calls, options.match ?? 'request')
  const requests: ModelRequest[] = []
  return {
    ...theModel(
      file,
      calls.map(({ entry }) => entry),
    ),
    requests,
    assertComplete() {
      if (order.left === 0) return
      throw new ConfigurationError(
        `${order.left} of ${calls.length} calls in ${file} were not played: fewer were made than when it was recorded. Record it anew if that is meant.`,
      )
    },
    stream: (request) =>
      new Observable((subscriber) => {
        requests.push(request)
        const digests = digestsOf(request)
        const call = order.take(callKey(digests))
        if (call === undefined) return subscriber.error(noReply(digests, order, file))
        void play(call, subscriber)
      }),
  }
}

/** Calls are written when they end, and numbered when they begin. */
function inOrder(calls: readonly RecordedCall[]): readonly RecordedCall[] {
  return calls.toSorted((one, other) => one.number - other.number)
}

/** One recording is of one model: its name decides what goes back to it of its earlier replies. */
function theModel(file: string, calls: readonly RecordedCall[]): Pick<Model, 'provider' | 'api' | 'modelId'> {
  const [first, ...others] = calls.map(({ model }) => model)
  if (first === undefined) {
    throw new ConfigurationError(`The recording ${file} holds no call. Record it anew.`)
  }
  const { provider, api, modelId } = first
  const same = others.every((one) => one.provider === provider && one.api === api && one.modelId === modelId)
  if (!same) {
    throw new ConfigurationError(
      `The recording ${file} holds calls of several models. Record each model into a file of its own.`,
    )
  }
  return { provider, api, modelId }
}

function noReply(asked: RequestDigests, { waiting }: ReplayOrder<RecordedCall>, file: string): ProviderError {
  const why =
    waiting === undefined
      ? 'all of its calls have been played'
      : `the next one differs in ${differenceOf(asked, waiting.request)}`
  const message = `No reply to this request is recorded in ${file.split(/[/\\]/).at(-1)}: ${why}. Record it anew.`
  return new ProviderError({ class: 'invalid_request', retryable: false, message })
}

function differenceOf(asked: RequestDigests, recorded: RequestDigests): string {
  if (asked.instructions !== recorded.instructions) return 'its instructions'
  if (asked.tools !== recorded.tools) return 'its tools'
  const place = recorded.messages.findIndex((digest, at) => asked.messages[at] !== digest)
  if (place >= 0) return `message ${place + 1} of ${recorded.messages.length}`
  if (asked.messages.length !== recorded.messages.length)
    return `its length of ${recorded.messages.length} messages`
  return 'its settings'
}

async function play({ signals, ending }: RecordedCall, subscriber: Subscriber<ModelSignal>): Promise<void> {
  for (const signal of signals) {
    // One promise turn between signals, so that commands can come in between, as they do on a wire.
    await Promise.resolve()
    if (subscriber.closed) return
    subscriber.next(signal)
  }
  await Promise.resolve()
  if (ending.type === 'completed') subscriber.complete()
  if (ending.type === 'failed') subscriber.error(new ProviderError(ending.failure))
}
