import { isJsonObject } from '@tallystick/core/kit'
import { type ModelRequest } from '@tallystick/core'
import {
  canonicalJson,
  digestOf,
  type Json,
  type JsonObject,
  type ModelFailure,
  type ModelRef,
  type ModelSignal,
} from '@tallystick/core/vocabulary'
import { listAt, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { withoutRunIds } from './replay-order.ts'

/** A request by the digests of its parts: enough to find its answer and to say where another differs. */
export interface RequestDigests {
  readonly instructions: string
  readonly messages: readonly string[]
  readonly tools: string
  /** Of everything else. */
  readonly settings: string
}

/** How a call ended: with the end of the reply, with a failure, or given up by who had asked. */
export type CallEnding =
  | { readonly type: 'completed' }
  | { readonly type: 'failed'; readonly failure: ModelFailure }
  | { readonly type: 'abandoned' }

/** One call of a model, and what it reported. */
export interface RecordedCall {
  /** Its place among the calls, as they began. */
  readonly number: number
  readonly model: ModelRef
  readonly request: RequestDigests
  readonly signals: readonly ModelSignal[]
  readonly ending: CallEnding
}

/** The digests of a request, in which the ids that a run gave its tool calls count for nothing. */
export function digestsOf({ instructions, messages, tools, ...settings }: ModelRequest): RequestDigests {
  const digest = (value: unknown): string => digestOf(withoutRunIds(canonicalJson(value as Json)))
  return {
    instructions: digest(instructions),
    messages: messages.map(digest),
    tools: digest(tools),
    settings: digest(settings),
  }
}

/** What two requests share that are to get the same reply. */
export function callKey(request: RequestDigests): string {
  return digestOf(request)
}

/** A call as a line of a recording holds it. */
export function callLine({ number, model, request, signals, ending }: RecordedCall): JsonObject {
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
export function callOf(line: JsonObject): RecordedCall | undefined {
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
