import type { MaxWebSearches } from '@tallystick/core/vocabulary'
import { countAt, textAt } from '../../shared/json/json-reading.ts'
import type { AnthropicOptions } from './options.ts'

/**
 * How many web searches Anthropic runs within one call: `max_uses` of each web search tool, which Anthropic enforces for
 * every request. Empty where no such tool is offered. `extraBody.tools` replaces all tools, so it decides where given.
 */
export function webSearchesOf({ providerTools = [], extraBody = {} }: AnthropicOptions): {
  readonly maxWebSearches?: MaxWebSearches
} {
  const tools: unknown = 'tools' in extraBody ? extraBody['tools'] : providerTools
  const bounds = (Array.isArray(tools) ? tools : [])
    .filter((tool) => textAt(tool, 'type')?.startsWith('web_search') === true)
    .map((tool) => countAt(tool, 'max_uses'))
  if (bounds.length === 0) return {}
  const known = bounds.filter((bound) => bound !== undefined)
  return { maxWebSearches: known.length < bounds.length ? 'unbounded' : sum(known) }
}

function sum(bounds: readonly number[]): number {
  return bounds.reduce((total, bound) => total + bound, 0)
}
