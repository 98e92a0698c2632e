export { genaiPrices, type GenaiPricesOptions } from './prices/genai-prices.ts'
