// Three adapters, each with one fault: an adapter of Ollama, and a line that spoils it.
import { filter, mergeMap, Observable, of } from 'rxjs'
import type { Model } from '@tallystick/core'
import { ollama } from '@tallystick/providers/ollama'

type Stream = ReturnType<Model['stream']>

function spoilStream(baseURL: string, spoil: (stream: Stream) => Stream): Model {
  const model = ollama('qwen-test', { baseURL })
  const { provider, api, modelId } = model
  return { provider, api, modelId, stream: (...call) => spoil(model.stream(...call)) }
}

/** Asks for each call when it begins, and again when it is whole. */
export const createRepeatingModel = (baseURL: string): Model =>
  spoilStream(baseURL, (stream) =>
    stream.pipe(
      mergeMap((signal) => (signal.type === 'model_tool_request' ? of(signal, signal) : of(signal))),
    ),
  )

/** Takes the end of the stream for the end of the reply. */
export const createEndlessModel = (baseURL: string): Model =>
  spoilStream(baseURL, (stream) => stream.pipe(filter(({ type }) => type !== 'model_finished')))

/** Reads on after it was given up. */
export const createDeafModel = (baseURL: string): Model =>
  spoilStream(
    baseURL,
    (stream) =>
      new Observable((subscriber) => {
        // The connection is not among what is torn down.
        stream.subscribe({
          next: (signal) => subscriber.next(signal),
          error: (error) => subscriber.error(error),
          complete: () => subscriber.complete(),
        })
      }),
  )
