import { ConfigurationError } from '@tallystick/core'
import {
  omitUndefined,
  option,
  type Rates,
  requireOptions,
  createMissingPackageError,
} from '@tallystick/core/internal'
import type { ModelRef, Price } from '@tallystick/core/vocabulary'

/** A unit's price: one number, or one that changes with the length of the input. */
type UnitPrice =
  | number
  | { readonly base: number; readonly tiers: readonly { readonly start: number; readonly price: number }[] }
  | undefined
/** The prices of a model, by unit. */
type ModelPrice = Readonly<Record<string, UnitPrice>>

type CalcPrice = (
  usage: { readonly input_tokens: number; readonly output_tokens: number },
  modelId: string,
  options: { readonly providerId: string },
) => { readonly model_price: object } | null

const name = '@pydantic/genai-prices'

/** Loads the package's function at once, since a price is needed synchronously. Throws `ConfigurationError`. */
function loadCalcPrice(): CalcPrice {
  try {
    const { createRequire } = process.getBuiltinModule('node:module')
    const { fileURLToPath } = process.getBuiltinModule('node:url')
    const require = createRequire(import.meta.url)
    // The file that an import loads: the same copy, whose data a program may have updated.
    const isModule = typeof import.meta.resolve === 'function'
    const file = isModule ? fileURLToPath(import.meta.resolve(name)) : require.resolve(name)
    return (require(file) as { readonly calcPrice: CalcPrice }).calcPrice
  } catch (error) {
    const { message } = createMissingPackageError('genaiPrices()', name, error)
    throw new ConfigurationError(
      `${message} Where packages are not loaded by their names, as in a bundle or a browser, import calcPrice from it and pass genaiPrices({ calcPrice }).`,
      { cause: error },
    )
  }
}

/** The data have no version of their own. */
const dataVersion = '@pydantic/genai-prices 0.1'

/** The data's names for providers that go by others here. */
const otherNames: ReadonlyMap<string, string> = new Map([['xai', 'x-ai']])

/** How models are looked up. */
export interface GenaiPricesOptions {
  /** The data's name for a provider, if it differs from the adapter's: `{ 'my-gateway': 'anthropic' }`. */
  readonly providers?: { readonly [provider: string]: string } | undefined
  /**
   * The function of that name from `@pydantic/genai-prices`. Needed only where a package cannot be loaded by its name: in
   * a bundle, in a browser.
   */
  readonly calcPrice?: CalcPrice | undefined
}

const genaiPricesOptions = option.fields<GenaiPricesOptions>({
  providers: option.maybe(option.recordOf(option.filledText)),
  calcPrice: option.maybe(option.anyFunction),
})

/**
 * Returns prices from the open data of `@pydantic/genai-prices`, which are part of that package and need no network.
 * Pass them to `createRuntime({ prices: genaiPrices() })`. A model that the data does not know has no price, so that a
 * run of it with `maxCostUsd` is refused at its start. Throws `ConfigurationError` if the package is not installed.
 */
export function genaiPrices(options: GenaiPricesOptions = {}): (model: ModelRef) => Price | undefined {
  if ('modelId' in Object(options)) {
    throw new ConfigurationError(
      'createRuntime got genaiPrices itself, and called it to learn a price. Call it: prices: genaiPrices().',
    )
  }
  requireOptions('genaiPrices', genaiPricesOptions, options)
  const { providers = {}, calcPrice = loadCalcPrice() } = options
  return ({ provider, modelId }) => {
    const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, modelId, {
      providerId: providers[provider] ?? otherNames.get(provider) ?? provider,
    })
    if (found === null) return undefined
    const prices = found.model_price as ModelPrice
    const base = readRates(prices, 0)
    if (base === undefined) return undefined
    const bounds = findBounds(prices)
    const longInput = bounds.flatMap((aboveInputTokens) => {
      const rates = readRates(prices, aboveInputTokens)
      return rates ? [{ aboveInputTokens, ...rates }] : []
    })
    const searchesUsd = readUnit(prices['web_searches_kcount'], 0)
    return {
      ...base,
      ...(longInput.length > 0 && { longInput }),
      ...(searchesUsd !== undefined && { webSearchUsd: searchesUsd / 1000 }),
      source: dataVersion,
    }
  }
}

const units = ['input_mtok', 'output_mtok', 'cache_read_mtok', 'cache_write_mtok', 'cache_write_1h_mtok']

/** Input lengths at which a price changes, ascending. */
function findBounds(price: ModelPrice): readonly number[] {
  const starts = units.flatMap((unit) => {
    const value = price[unit]
    return typeof value === 'object' ? value.tiers.map(({ start }) => start) : []
  })
  return [...new Set(starts)].sort((a, b) => a - b)
}

/** Reads the rates for inputs above a bound; `undefined` if the data do not price both input and output. */
function readRates(price: ModelPrice, bound: number): Rates | undefined {
  const [inputUsd, outputUsd, cacheReadUsd, cacheWriteUsd, cacheWriteLongUsd] = units.map((unit) =>
    readUnit(price[unit], bound),
  )
  if (inputUsd === undefined || outputUsd === undefined) return undefined
  return { inputUsd, outputUsd, ...omitUndefined({ cacheReadUsd, cacheWriteUsd, cacheWriteLongUsd }) }
}

function readUnit(value: UnitPrice, bound: number): number | undefined {
  if (typeof value !== 'object') return value
  return value.tiers.findLast(({ start }) => start <= bound && bound > 0)?.price ?? value.base
}
