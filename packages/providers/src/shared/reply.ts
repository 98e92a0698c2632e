import type { ProviderError, Usage } from '@tallystick/core'
import { isJsonObject, findParsedFault, readJson } from '@tallystick/core/internal'
import type { JsonObject, ModelSignal, Opaque, RequestedCall } from '@tallystick/core/vocabulary'
import type { StreamEnding } from './body.ts'
import { isCount } from './json.ts'

/** Reads the events of one reply. */
export interface ReplyReader<Event = unknown> {
  /** Turns one event into signals. Throws a `ProviderError` for a stream that cannot be trusted. */
  read(event: Event): Iterable<ModelSignal>
  /**
   * Called if the stream ends without a terminal event. Returns the last signals if the reply is complete, else `undefined`.
   * Before a break only a finish reason proves that; a clean end proves it for servers that are known to give no reason. A
   * wire whose replies end only with a terminal event has no such function.
   */
  readonly end?: (ending: StreamEnding) => readonly ModelSignal[] | undefined
  /** The reply is complete; the rest does not matter. */
  readonly finished: boolean
  /** Set if the reply says that it failed. */
  readonly failure?: ProviderError | undefined
}

/** Reads the data of a part's `Opaque`; `undefined` for another wire or service. */
export function readOpaqueData(
  opaque: Opaque | undefined,
  provider: string,
  api: string,
): JsonObject | undefined {
  if (opaque?.provider !== provider || opaque.api !== api) return undefined
  return isJsonObject(opaque.data) ? opaque.data : undefined
}

export type CallInput = Pick<RequestedCall, 'input' | 'malformed'>

/** Reads a call's complete arguments. None mean an empty object. */
export function readCallInput(text: string): CallInput {
  if (text.trim() === '') return { input: {} }
  try {
    const input = readJson(text)
    if (isJsonObject(input)) return { input }
    return refuseNonObject(text)
  } catch (error) {
    return { input: {}, malformed: { text, error: (error as Error).message } }
  }
}

/** Reads the input of a call that its service sent as JSON, not as text. */
export function readGivenInput(given: unknown): CallInput {
  if (given === undefined || given === null) return { input: {} }
  if (typeof given === 'string') return readCallInput(given)
  const error = findParsedFault(given)
  if (error === undefined && isJsonObject(given)) return { input: given }
  let text = ''
  try {
    text = JSON.stringify(given)
  } catch {
    // It is nested too deep to be written.
  }
  return error === undefined ? refuseNonObject(text) : { input: {}, malformed: { text, error } }
}

/** True for empty arguments: some servers write null, or an empty list, for a tool without parameters. */
export function isEmptyInput(text: string): boolean {
  return ['', 'null', '[]'].includes(text.trim())
}

/** Replaces an input that is not JSON: any server takes it, and the model sees what it wrote. */
export function wrapUnreadInput(text: string): { readonly INVALID_JSON: string } {
  return { INVALID_JSON: text }
}

export function wrapInObject(text: string): string {
  return JSON.stringify(wrapUnreadInput(text))
}

function refuseNonObject(text: string): CallInput {
  return { input: {}, malformed: { text, error: 'The input is valid JSON, but not an object.' } }
}

type Counts = { readonly [field in keyof Usage]-?: number | undefined }

/**
 * Makes a `Usage`, whose totals include their parts. Some services count reasoning beside the output (xAI), and some the
 * cache beside the prompt: their `total` shows it, or a part that is larger than its whole. What was not reported stays
 * unknown.
 */
export function mergeUsageCounts(given: Counts, total?: number): Usage {
  const counts = pickSoundCounts(given)
  const { inputTokens, outputTokens, reasoningTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = counts
  const beside = (parts: number, whole: number): boolean => {
    if (parts > whole) return true
    return total !== undefined && parts > 0 && total === (inputTokens ?? 0) + (outputTokens ?? 0) + parts
  }
  const cached = cacheReadTokens + cacheWriteTokens
  const reasonedBeside = outputTokens !== undefined && beside(reasoningTokens, outputTokens)
  const cachedBeside = inputTokens !== undefined && !reasonedBeside && beside(cached, inputTokens)
  const mended: Counts = {
    ...counts,
    ...(reasonedBeside && { outputTokens: outputTokens + reasoningTokens }),
    ...(inputTokens !== undefined &&
      (cachedBeside || cached > inputTokens) && { inputTokens: inputTokens + cached }),
  }
  return pickSoundCounts(mended) as Usage
}

/** Some services write -1, or not a number, for what they do not know. */
function pickSoundCounts(counts: Counts): Counts {
  const sound = Object.entries(counts).filter(([, count]) => count !== undefined && isCount(count))
  return Object.fromEntries(sound) as unknown as Counts
}

/** Leaves out fields that are unknown or empty. */
export function omitUnknown<T extends object>(fields: { readonly [K in keyof T]-?: T[K] | undefined }): T {
  const filled = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')
  return Object.fromEntries(filled) as T
}
