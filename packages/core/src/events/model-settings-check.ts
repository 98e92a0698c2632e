import { type ModelSettings, reasoningEfforts } from './model-request.ts'
import {
  fields,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  type Schema,
  recordOf,
  valueThat,
} from '../values/option.ts'
import { omitUndefined } from '../values/json.ts'
import { jsonObject } from '../values/schema.ts'

const probability = valueThat(
  'a number from 0 to 1',
  (value) => typeof value === 'number' && value >= 0 && value <= 1,
  { showsText: true },
)

const optionsOfProvider = valueThat(
  'an object of JSON, in the words of the provider by whose name it goes',
  (value) => jsonObject(value) === undefined,
)

/** How models write. What only one vendor knows has its place in `providerOptions`. */
export const someSettings: Schema = fields<ModelSettings>(
  {
    temperature: maybe(numberFrom(0)),
    topP: maybe(probability),
    stop: maybe(
      listOf(valueThat('a text that is not empty', (text) => typeof text === 'string' && text !== '')),
    ),
    seed: maybe(valueThat('a whole number', Number.isSafeInteger, { showsText: true })),
    maxOutputTokens: maybe(numberFrom(1, { whole: true })),
    reasoningEffort: maybe(oneOf(reasoningEfforts)),
    providerOptions: maybe(recordOf(optionsOfProvider)),
  },
  {
    nucleus: 'topP',
    providerMetadata: 'providerOptions',
    extraBody: 'providerOptions',
    topK: 'providerOptions',
  },
)

/** Settings as they are recorded: without what is `undefined`, and none at all where nothing is set. */
export function toRecordedSettings(settings: ModelSettings | undefined): ModelSettings | undefined {
  const set: ModelSettings = omitUndefined({ ...settings })
  return Object.keys(set).length === 0 ? undefined : set
}
