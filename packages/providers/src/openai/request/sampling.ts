import type { ProviderError } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import type { JsonObject, ModelSettings } from '@tallystick/core/vocabulary'
import type { OpenAIWarning } from '../options/options.ts'

/** What a wire of OpenAI's kind takes of how a model is to write. */
export interface SamplingWays {
  /** How many texts that end a reply it takes; 0 where it knows none. */
  readonly maxStop: number
  /** The field of the seed. */
  readonly seedField: 'seed' | 'random_seed' | 'none'
  /** The field of how much the model reasons, where it is one of the body. */
  readonly effortField?: 'reasoning_effort'
}

/** The fields of a body that say how the model is to write, without those that the model is known to refuse. */
export function samplingFields(
  { temperature, topP, stop = [], seed, reasoningEffort }: ModelSettings,
  ways: SamplingWays,
  { refused, warn }: { readonly refused: readonly string[]; readonly warn: (warning: OpenAIWarning) => void },
): JsonObject {
  if (stop.length > ways.maxStop) warnOf(warn, stopMessage(ways.maxStop))
  if (seed !== undefined && ways.seedField === 'none')
    warnOf(warn, 'The server takes no seed, so none was sent.')
  const taken = stop.slice(0, ways.maxStop)
  const fields: JsonObject = {
    ...omitUndefined({
      temperature,
      top_p: topP,
      reasoning_effort: ways.effortField && reasoningEffort,
    }),
    ...(taken.length > 0 && { stop: taken }),
    ...(seed !== undefined && ways.seedField !== 'none' && { [ways.seedField]: seed }),
  }
  const sent = Object.entries(fields).filter(([field]) => !refused.includes(field))
  for (const field of Object.keys(fields)) if (refused.includes(field)) warnOf(warn, refusedMessage(field))
  return Object.fromEntries(sent)
}

function stopMessage(max: number): string {
  return max === 0
    ? 'The service knows no texts that end a reply, so none were sent.'
    : `The server takes ${max} texts that end a reply, so only the first ${max} were sent.`
}

/** Says that a model takes no such field. */
export function refusedMessage(field: string): string {
  return `The model takes no ${field}, so it was left out.`
}

/** The field of the reasoning effort within `reasoning`. */
export const effortName = 'reasoning.effort'

function warnOf(warn: (warning: OpenAIWarning) => void, message: string): void {
  warn({ what: 'model_settings', message })
}

const samplingNames = ['temperature', 'top_p', 'stop', 'seed', 'random_seed', 'reasoning_effort']

/**
 * What a model takes none of, of the fields of a body, where a request was refused for it: how the model is to write, which
 * reasoning models do not let themselves be told, or a choice of tools, which models that think do not. The latter by its
 * kind, since a model may take another one. A value out of bounds is no such refusal.
 */
export function refusedField(failure: ProviderError, body: object): string | undefined {
  if (failure.class !== 'invalid_request') return undefined
  const choice = 'tool_choice' in body ? refusableChoice(body.tool_choice) : undefined
  if (choice !== undefined && choiceWords.every((words) => words.test(failure.message))) return choice
  if (!/unsupported|not supported|does not support/i.test(failure.message)) return undefined
  if ('reasoning' in body && failure.message.includes(`'${effortName}'`)) return effortName
  return samplingNames.find((field) => field in body && failure.message.includes(`'${field}'`))
}

/** What DeepSeek, Moonshot, Alibaba and others say of a choice that their thinking models do not take. */
const choiceWords = [
  /tool.?choice/i,
  /incompatible|not support|unsupported|not allowed|not available|only (auto|none)/i,
]

/** A choice of tools, unless the model is known to refuse its kind: then the model is free, as its vendor advises. */
export function takenChoice<Choice>(
  choice: Choice,
  refused: readonly string[],
  warn: (warning: OpenAIWarning) => void,
): Choice | undefined {
  const known = refusableChoice(choice)
  if (known === undefined || !refused.includes(known)) return choice
  const message = 'The model takes no such choice of tools, so it was free to call any or none.'
  warn({ what: 'tool_choice', message })
  return undefined
}

/** How a refused choice of tools is remembered; `undefined` for one that leaves the model free. */
function refusableChoice(wireChoice: unknown): string | undefined {
  if (wireChoice === 'auto' || wireChoice === undefined) return undefined
  return `tool_choice ${typeof wireChoice === 'string' ? wireChoice : 'named'}`
}
