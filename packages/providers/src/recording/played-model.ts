import { ConfigurationError, type Model, type ModelRequest, ProviderError } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { Observable, type Subscriber } from 'rxjs'
import { callKey, callOf, digestsOf, type RecordedCall, type RequestDigests } from './file/recorded-call.ts'
import { readRecording } from './file/recording-file.ts'
import { type ReplayOrder, replayOrder } from './file/replay-order.ts'
import { playedOptions, requireRecordingOptions } from './option-check.ts'
import type { PlayedModelOptions } from './options.ts'

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
