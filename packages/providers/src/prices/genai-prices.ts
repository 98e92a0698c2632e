import type { ModelRef, Price, Rates } from '@tallystick/core'
import { calcPrice } from '@pydantic/genai-prices'

/** The version of the package whose data is used: it has no number of its own for them. */
const dataVersion = '@pydantic/genai-prices 0.1'

/** How models are looked up. */
export interface GenaiPricesOptions {
  /** The data's name for a provider, where it is not the adapter's: `{ 'my-gateway': 'anthropic' }`. */
  readonly providers?: { readonly [provider: string]: string }
}

/**
 * Prices from the open data of `@pydantic/genai-prices`, which come with the package and need no network. Hand it to
 * `createRuntime({ prices: genaiPrices() })`. A model that the data do not know has no price, so that a run of it with
 * `costMaxUsd` is refused at its start.
 */
export function genaiPrices({ providers = {} }: GenaiPricesOptions = {}): (
  model: ModelRef,
) => Price | undefined {
  return ({ provider, modelId }) => {
    const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, modelId, {
      providerId: providers[provider] ?? provider,
    })
    if (found === null) return undefined
    const base = ratesAbove(found.model_price, 0)
    if (base === undefined) return undefined
    const bounds = boundsOf(found.model_price)
    const longInput = bounds.flatMap((aboveInputTokens) => {
      const rates = ratesAbove(found.model_price, aboveInputTokens)
      return rates ? [{ aboveInputTokens, ...rates }] : []
    })
    return { ...base, ...(longInput.length > 0 && { longInput }), source: dataVersion }
  }
}

/** A unit's price: one number, or one that changes with the length of the input. */
type UnitPrice =
  | number
  | { readonly base: number; readonly tiers: readonly { readonly start: number; readonly price: number }[] }
  | undefined
type ModelPrice = Readonly<Record<string, UnitPrice>>

const units = ['input_mtok', 'output_mtok', 'cache_read_mtok', 'cache_write_mtok'] as const

/** Where the data change a price, ascending. */
function boundsOf(price: ModelPrice): readonly number[] {
  const starts = units.flatMap((unit) => {
    const value = price[unit]
    return typeof value === 'object' ? value.tiers.map(({ start }) => start) : []
  })
  return [...new Set(starts)].sort((a, b) => a - b)
}

/** The rates for inputs above a bound; `undefined` where the data do not price both input and output. */
function ratesAbove(price: ModelPrice, bound: number): Rates | undefined {
  const [inputUsd, outputUsd, cacheReadUsd, cacheWriteUsd] = units.map((unit) =>
    unitAbove(price[unit], bound),
  )
  if (inputUsd === undefined || outputUsd === undefined) return undefined
  return {
    inputUsd,
    outputUsd,
    ...(cacheReadUsd !== undefined && { cacheReadUsd }),
    ...(cacheWriteUsd !== undefined && { cacheWriteUsd }),
  }
}

function unitAbove(value: UnitPrice, bound: number): number | undefined {
  if (typeof value !== 'object') return value
  return value.tiers.findLast(({ start }) => start <= bound && bound > 0)?.price ?? value.base
}
