import type { JsonObject, MaxWebSearches } from '@tallystick/core/vocabulary'
import { countAt, textAt } from '../../shared/json/json-reading.ts'

/**
 * How many web searches OpenAI runs within one call: `max_tool_calls` of the request's body, which bounds the calls of all
 * tools that OpenAI runs itself. Empty where no web search is offered. `extraBody.tools` replaces all tools, so it decides
 * where given.
 */
export function webSearchesOf({
  providerTools = [],
  extraBody = {},
}: {
  readonly providerTools?: readonly JsonObject[] | undefined
  readonly extraBody?: JsonObject | undefined
}): { readonly maxWebSearches?: MaxWebSearches } {
  const tools: unknown = 'tools' in extraBody ? extraBody['tools'] : providerTools
  const offered = Array.isArray(tools) ? tools : []
  if (!offered.some((tool) => textAt(tool, 'type')?.startsWith('web_search') === true)) return {}
  return { maxWebSearches: countAt(extraBody, 'max_tool_calls') ?? 'unbounded' }
}
