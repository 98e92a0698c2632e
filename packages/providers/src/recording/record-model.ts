import { type Model, ProviderError } from '@tallystick/core'
import { calledModel, requireOptions } from '@tallystick/core/kit'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'
import { type CallEnding, callLine, digestsOf } from './file/recorded-call.ts'
import { recordingWriter } from './file/recording-file.ts'

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
