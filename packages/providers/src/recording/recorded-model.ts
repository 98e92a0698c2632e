import { ConfigurationError, type Model, type ModelRequest, ProviderError } from '@tallystick/core'
import { calledModel, isJsonObject, requireOptions } from '@tallystick/core/internal'
import {
  toCanonicalJson,
  computeDigest,
  type Json,
  type JsonObject,
  type ModelFailure,
  type ModelRef,
  type ModelSignal,
} from '@tallystick/core/vocabulary'
import { Observable, type Subscriber } from 'rxjs'
import { getList, getNumber, getObject, getText } from '../shared/json.ts'
import { readRecording, RecordingWriter, ReplayOrder, withoutRunIds } from './file.ts'
import { type PlayedModelOptions, playedOptions, requireRecordingOptions } from './recording-fetch.ts'

/** The digests of a request's parts: enough to find its answer, and to say where another request differs. */
interface RequestDigests {
  readonly instructions: string
  readonly messages: readonly string[]
  readonly tools: string
  /** Of everything else. */
  readonly settings: string
}

type CallEnding =
  | { readonly type: 'completed' }
  | { readonly type: 'failed'; readonly failure: ModelFailure }
  | { readonly type: 'abandoned' }

interface RecordedCall {
  /** Its place in the order in which calls began. */
  readonly number: number
  readonly model: ModelRef
  readonly request: RequestDigests
  readonly signals: readonly ModelSignal[]
  readonly ending: CallEnding
}

/** Ids that a run gave its tool calls do not count. */
function digestParts({ instructions, messages, tools, ...settings }: ModelRequest): RequestDigests {
  const digest = (value: unknown): string => computeDigest(withoutRunIds(toCanonicalJson(value as Json)))
  return {
    instructions: digest(instructions),
    messages: messages.map(digest),
    tools: digest(tools),
    settings: digest(settings),
  }
}

/**
 * Returns the same model, which records its calls in `file` for `playedModel`: what it reported, and digests of what it was
 * asked. For any model; `recordingFetch` records the bytes of a wire. The first call that ends replaces an earlier
 * recording.
 *
 * Throws `ConfigurationError` if `model` is not a model, or if the file cannot be written.
 */
export function recordModel(model: Model, file: string): Model {
  requireOptions('recordModel', calledModel, model, 'the model')
  const writer = new RecordingWriter(file, 'calls')
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
          const call: RecordedCall = {
            ...{ number, request: digestParts(request), signals, ending },
            model: { provider, api, modelId },
          }
          writer.write(call as unknown as JsonObject)
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
  /** The requests that it got, in order. */
  readonly requests: readonly ModelRequest[]
  /** Throws `ConfigurationError` when recorded calls are left over. */
  assertComplete(): void
}

/**
 * Returns a model that plays the recording of `recordModel` in `file`, each call once. A request without a recorded reply
 * fails with `invalid_request`, which says where it differs from what was recorded. A call that was given up continues to
 * where it was, and then waits.
 *
 * Throws `ConfigurationError` if the file is missing, or is not such a recording.
 */
export function playedModel(file: string, options: PlayedModelOptions = {}): PlayedModel {
  requireRecordingOptions('playedModel', playedOptions, { file, options })
  const calls = readRecording(file, 'calls')
    .map((line, place): RecordedCall => {
      const [model, request, ending] = ['model', 'request', 'ending'].map((key) => getObject(line, key))
      const isCall =
        getNumber(line, 'number') !== undefined &&
        getText(model, 'modelId') !== undefined &&
        getText(request, 'tools') !== undefined &&
        getText(ending, 'type') !== undefined &&
        getList(line, 'signals').every(isJsonObject)
      if (isCall) return line as unknown as RecordedCall
      throw new ConfigurationError(
        `Line ${place + 2} of the recording ${file} is not a call of a model, so the recording is damaged. Record it again.`,
      )
    })
    // Calls are written when they end, and numbered when they begin.
    .toSorted((one, other) => one.number - other.number)
    .map((call) => ({ key: computeDigest(call.request), entry: call }))
  const order = new ReplayOrder(calls, options.match ?? 'request')
  const requests: ModelRequest[] = []
  return {
    ...readModel(
      file,
      calls.map(({ entry }) => entry),
    ),
    requests,
    assertComplete() {
      const { length } = order.left
      if (length === 0) return
      throw new ConfigurationError(
        `${length} of ${calls.length} calls in ${file} were not played: fewer were made than when it was recorded. Record it again if that is meant.`,
      )
    },
    stream: (request) =>
      new Observable((subscriber) => {
        requests.push(request)
        const digests = digestParts(request)
        const call = order.take(computeDigest(digests))
        if (call === undefined) {
          const [waiting] = order.left
          const why =
            waiting === undefined
              ? 'all of its calls have been played'
              : `the next one differs in ${findDifference(digests, waiting.request)}`
          const message = `No reply to this request is recorded in ${file.split(/[/\\]/).at(-1)}: ${why}. Record it again.`
          return subscriber.error(new ProviderError({ class: 'invalid_request', retryable: false, message }))
        }
        void play(call, subscriber)
      }),
  }
}

/** A recording belongs to one model, whose name decides which parts of its earlier replies are sent back. */
function readModel(
  file: string,
  calls: readonly RecordedCall[],
): Pick<Model, 'provider' | 'api' | 'modelId'> {
  const [first, ...others] = calls.map(({ model }) => model)
  if (first === undefined) {
    throw new ConfigurationError(`The recording ${file} holds no call. Record it again.`)
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

function findDifference(asked: RequestDigests, recorded: RequestDigests): string {
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
    // Commands can come between two signals, as they do on a wire.
    await Promise.resolve()
    if (subscriber.closed) return
    subscriber.next(signal)
  }
  await Promise.resolve()
  if (ending.type === 'completed') subscriber.complete()
  if (ending.type === 'failed') subscriber.error(new ProviderError(ending.failure))
}
