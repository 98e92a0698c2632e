import { ConfigurationError } from '../errors.ts'
import type { Model } from '../ports/model.ts'
import type { CompactionOptions } from './agent.ts'
import type { Tool } from '../ports/tool.ts'
import { limitNames, onLimits, type Limits, type RetryPolicy } from '../vocabulary/limits.ts'
import { faultOf, jsonObject } from '../vocabulary/schema.ts'
import { recoveries, toolEffects } from '../vocabulary/tool-definition.ts'

/** Refuses what `defineAgent` has not made. */
export function requireAgent(
  agent: { readonly definition?: { readonly digest?: string } } | undefined,
): void {
  if (typeof agent?.definition?.digest === 'string') return
  throw new ConfigurationError('A runtime needs agents that are made with defineAgent.')
}

/** Refuses what cannot be called, or cannot be named in a ledger. */
export function requireModel(agent: string, model: Model | undefined): void {
  if (typeof model?.stream !== 'function') {
    throw new ConfigurationError(
      `Agent ${agent} needs a model, such as anthropic('…') of @tallystick/providers/anthropic.`,
    )
  }
  if ([model.provider, model.api, model.modelId].every((name) => typeof name === 'string')) return
  throw new ConfigurationError(
    `A model of agent ${agent} does not say its provider, api and modelId, so no ledger could say who answered.`,
  )
}

/** Refuses tools that could not be offered, run or taken up again. */
export function requireTools(agent: string, tools: readonly Tool[]): void {
  const names = new Set<string>()
  for (const tool of tools) {
    if (typeof tool?.run !== 'function' || typeof tool.check !== 'function') {
      throw new ConfigurationError(
        `A tool of agent ${agent} is none; make it with defineTool of @tallystick/tools.`,
      )
    }
    const fault = toolFault(tool)
    if (fault) throw new ConfigurationError(`The tool ${tool.name} of agent ${agent} ${fault}.`)
    if (names.has(tool.name)) {
      throw new ConfigurationError(
        `Agent ${agent} has two tools named ${tool.name}, and a model could not tell them apart. Rename one.`,
      )
    }
    names.add(tool.name)
  }
}

function toolFault(tool: Tool): string | undefined {
  const { name, description, inputSchema, effect, recovery } = tool
  if (typeof name !== 'string' || name === '') return 'has no name, so no model could ask for it'
  if (typeof description !== 'string') return "has no description; say when to use it, or give ''"
  if (faultOf(jsonObject, inputSchema)) return 'has no input schema; give a JSON Schema of type object'
  if (!toolEffects.includes(effect)) return `says effect ${effect}; use one of ${toolEffects.join(', ')}`
  if (!recoveries.includes(recovery)) return `says recovery ${recovery}; use one of ${recoveries.join(', ')}`
  if (recovery === 'reconcile' && typeof tool.reconcile !== 'function') {
    return 'says recovery reconcile, but has no function for it'
  }
  return undefined
}

/** Refuses a compaction that could never take place, or would leave nothing. */
export function requireCompaction(agent: string, compaction: CompactionOptions | undefined): void {
  if (compaction === undefined) return
  requireNumber(`compaction.contextTokensMax of agent ${agent}`, compaction.contextTokensMax, 0)
  requireNumber(`compaction.keepMessages of agent ${agent}`, compaction.keepMessages, 0)
  const { summarize } = compaction
  if (typeof summarize === 'object') requireModel(agent, summarize)
  else if (summarize !== undefined && typeof summarize !== 'function') {
    throw new ConfigurationError(
      `compaction.summarize of agent ${agent} is neither a model nor a function. Leave it out to leave older messages out.`,
    )
  }
}

/** Refuses limits that are no maxima. */
export function requireLimits(agent: string, limits: Limits): void {
  for (const limit of [...limitNames, 'concurrencyMax', 'graceMs'] as const) {
    requireNumber(`The limit ${limit} of agent ${agent}`, limits[limit], limit === 'concurrencyMax' ? 1 : 0)
  }
  for (const [tool, max] of Object.entries(limits.callsMaxByTool ?? {})) {
    requireNumber(`The limit callsMaxByTool.${tool} of agent ${agent}`, max, 0)
  }
  if (limits.onLimit !== undefined && !onLimits.includes(limits.onLimit)) {
    throw new ConfigurationError(
      `onLimit of agent ${agent} is ${limits.onLimit}; use one of ${onLimits.join(', ')}.`,
    )
  }
}

/** Refuses waits and attempts that are no numbers: a retry without end would look like a run that hangs. */
export function requireRetry(agent: string, retry: Partial<RetryPolicy>): void {
  for (const [field, value] of Object.entries(retry)) {
    requireNumber(`retry.${field} of agent ${agent}`, value, field === 'attemptsMax' ? 1 : 0)
  }
}

/** Refuses a number below `min`, and what is no finite number: a ledger cannot carry it. */
export function requireNumber(subject: string, value: number | undefined, min: number): void {
  if (value === undefined || (Number.isFinite(value) && value >= min)) return
  throw new ConfigurationError(`${subject} is ${value}; it has to be a finite number of at least ${min}.`)
}
