export { genaiPrices, type GenaiPricesOptions } from './genai-prices.ts'
