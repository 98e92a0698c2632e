import { ConfigurationError } from '@tallystick/core'
import { missingPackage } from '../shared/client/optional-package.ts'

/** A unit's price: one number, or one that changes with the length of the input. */
export type UnitPrice =
  | number
  | { readonly base: number; readonly tiers: readonly { readonly start: number; readonly price: number }[] }
  | undefined
/** The prices of a model, by unit. */
export type ModelPrice = Readonly<Record<string, UnitPrice>>

/** What is needed of the function `calcPrice` of `@pydantic/genai-prices`. */
export type CalcPrice = (
  usage: { readonly input_tokens: number; readonly output_tokens: number },
  modelId: string,
  options: { readonly providerId: string },
) => { readonly model_price: object } | null

const name = '@pydantic/genai-prices'

/** The package's function, loaded at once since a price is asked for within one step. Throws `ConfigurationError`. */
export function loadCalcPrice(): CalcPrice {
  try {
    const { createRequire } = process.getBuiltinModule('node:module')
    const require = createRequire(import.meta.url)
    return (require(place(require)) as { readonly calcPrice: CalcPrice }).calcPrice
  } catch (error) {
    const { message } = missingPackage('genaiPrices', name, error)
    throw new ConfigurationError(
      `${message} Where packages are not loaded by their names, as in a bundle or a browser, import calcPrice from it and pass genaiPrices({ calcPrice }).`,
      { cause: error },
    )
  }
}

/** The file that an import loads: the same copy, whose data a program may have brought up to date. */
function place(require: NodeJS.Require): string {
  if (typeof import.meta.resolve !== 'function') return require.resolve(name)
  const { fileURLToPath } = process.getBuiltinModule('node:url')
  return fileURLToPath(import.meta.resolve(name))
}
