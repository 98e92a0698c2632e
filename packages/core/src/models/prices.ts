import { createUnfitFault, type Fault } from '../values/schema.ts'
import type { ModelRef } from '../events/content.ts'
import { type GivenPrice, type LongInputRates, maxPriceUsd, type Price } from '../events/usage.ts'
import { ConfigurationError } from '../values/errors.ts'
import { getOwn, omitUndefined, type OrUndefined } from '../values/json.ts'
import {
  anyText,
  fields,
  listOf,
  maybe,
  numberFrom,
  type Schema,
  requireOptions,
  valueThat,
} from '../values/option.ts'
import { formatErrorSentence } from '../values/text.ts'

/** Says what a model costs; `undefined` if it does not know. */
export type Prices =
  | { readonly [modelId: string]: GivenPrice }
  | ((model: ModelRef) => GivenPrice | undefined)

const rate = valueThat(
  `a number of US dollars from 0 to ${maxPriceUsd}`,
  (value) => typeof value === 'number' && value >= 0 && value <= maxPriceUsd,
  { showsText: true },
)

const rates = {
  inputUsd: rate,
  outputUsd: rate,
  cacheReadUsd: maybe(rate),
  cacheWriteUsd: maybe(rate),
  cacheWriteLongUsd: maybe(rate),
} as const

/** Names that other libraries and price lists have for the same. */
const otherNames = {
  prompt: 'inputUsd',
  inputPrice: 'inputUsd',
  input_mtok: 'inputUsd',
  completion: 'outputUsd',
  outputPrice: 'outputUsd',
  output_mtok: 'outputUsd',
  inputPerMillion: 'inputUsd',
  outputPerMillion: 'outputUsd',
  cached: 'cacheReadUsd',
  cachedInput: 'cacheReadUsd',
  cache_read_mtok: 'cacheReadUsd',
  cacheCreation: 'cacheWriteUsd',
}

const longRates = listOf(
  fields<OrUndefined<LongInputRates>>({ ...rates, aboveInputTokens: numberFrom(0) }, otherNames),
)

const priceFields = fields<GivenPrice>(
  {
    ...rates,
    webSearchUsd: maybe(rate),
    longInput: maybe((value) => longRates(value) ?? findOrderFault(value)),
    source: maybe(anyText),
  },
  { ...otherNames, tiers: 'longInput' },
)

/** The price of a model, in US dollars for a million tokens. */
export const modelPrice: Schema = (value) =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? createUnfitFault(value, 'US dollars for a million tokens, as in { inputUsd: 3, outputUsd: 15 }')
    : priceFields(value)

/** The rates of the longest input that is long enough hold, so their bounds ascend. */
function findOrderFault(value: unknown): Fault | undefined {
  const bounds = (value as readonly LongInputRates[]).map(({ aboveInputTokens }) => aboveInputTokens)
  if (bounds.every((bound, place) => place === 0 || bound > (bounds[place - 1] ?? Infinity))) return undefined
  return {
    path: '',
    what: `has the bounds ${bounds.join(', ')}; give the rates with aboveInputTokens ascending`,
  }
}

/** Returns the price of a model by the user's prices. Throws a `ConfigurationError` for an answer that is not a price. */
export function findCheckedPrice(prices: Prices, model: ModelRef): Price | undefined {
  const price = typeof prices === 'function' ? askPrice(prices, model) : getOwn(prices, model.modelId)
  if (price !== undefined) requireOptions('prices', modelPrice, price, `the price of ${model.modelId}`)
  return price && toRecordedPrice(price)
}

/** The price as a ledger holds it: a field is there or not. */
function toRecordedPrice({ longInput, ...price }: GivenPrice): Price {
  const longer = longInput?.map((rates) => omitUndefined({ ...rates }) as LongInputRates)
  return {
    ...(omitUndefined({ ...price }) as Omit<Price, 'longInput'>),
    ...omitUndefined({ longInput: longer }),
  }
}

function askPrice(
  prices: (model: ModelRef) => GivenPrice | undefined,
  model: ModelRef,
): GivenPrice | undefined {
  try {
    return prices(model)
  } catch (cause) {
    if (cause instanceof ConfigurationError) throw cause
    throw new ConfigurationError(
      `The function prices of createRuntime failed for ${model.modelId}: ${formatErrorSentence(cause)} Let it return undefined for a model whose price it does not know.`,
      { cause },
    )
  }
}
