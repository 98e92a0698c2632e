import { ConfigurationError, type Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type { AnyContext, OfferingTurn, ToolSource } from '@tallystick/core/vocabulary'
import { defineTool } from '../definition/define-tool.ts'
import { foundAnswer, namesBack } from '../search/found-tools.ts'
import { toolIndex, type ToolIndex } from '../search/ranking.ts'

/** Which tools a model is shown before it searches, and how many after. */
export interface SearchableToolsOptions {
  /** Names of tools that are always shown. */
  readonly always?: readonly string[] | undefined
  /** How many tools that were found are shown at the same time, those of `always` not counted. Default: 20. */
  readonly maxShown?: number | undefined
  /** How many tools one search finds. Default: 5. */
  readonly maxFound?: number | undefined
  /** What the tools are about, in a few words for the model, such as "GitHub, Slack and the calendar". */
  readonly about?: string | undefined
  /** The name of the tool that searches. Default: `search_tools`. */
  readonly toolName?: string | undefined
}

const { fields, filledText, listOf, maybe, numberFrom, valueThat } = option
const searchOptions = fields<SearchableToolsOptions>({
  always: maybe(listOf(filledText)),
  maxShown: maybe(numberFrom(1, { whole: true })),
  maxFound: maybe(numberFrom(1, { whole: true })),
  about: maybe(filledText),
  toolName: maybe(filledText),
})
const toolList = listOf(valueThat('a tool', isTool))
const source = valueThat('a source of tools that does not choose among them itself', (value) => {
  const { tools, offered } = Object(value) as { readonly tools?: unknown; readonly offered?: unknown }
  return Array.isArray(tools) && offered === undefined
})

/**
 * A `toolSource` for many tools: the model sees a tool that searches, and from its next turn on the tools that it
 * found. The conversation determines which tools a turn offers, so that a process that takes the run over, the next run
 * of the session and a replay offer the same; they are on record with the model call. The tools that were found or used
 * last stay, up to `maxShown`. A tool that is not shown cannot be called.
 */
export function searchableTools<Context = AnyContext>(
  tools: readonly Tool<Context>[] | ToolSource<Context>,
  options: SearchableToolsOptions = {},
): ToolSource<Context> {
  requireOptions('searchableTools', Array.isArray(tools) ? toolList : source, tools, 'tools')
  requireOptions('searchableTools', searchOptions, options)
  const { always = [], maxShown = 20, maxFound = 5, about, toolName = 'search_tools' } = options
  const toolsNow = listedBy(tools)
  if (Array.isArray(tools)) requireNames(toolsNow(), always, toolName)
  const indexNow = keptIndex()
  const search = defineTool({
    name: toolName,
    description:
      'Finds tools that you are not shown, by what they do. Use it when none of the tools you have does what is needed; ' +
      `from your next reply on you can call what it found.${about === undefined ? '' : ` There are tools for ${about}.`}`,
    input: {
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, description: 'What the tool should do, in a few words.' },
      },
      required: ['query'],
      additionalProperties: false,
    } as const,
    effect: 'read',
    // What was found is read from the result, which must not be cut for that.
    maxResultChars: 1_000_000,
    execute: (input) => {
      const now = toolsNow()
      const names = indexNow(now).find((input as { query: string }).query)
      return foundAnswer(
        names.slice(0, maxFound).flatMap((name) => now.find((tool) => tool.name === name) ?? []),
      )
    },
  })
  return {
    get tools() {
      return [search as Tool<Context>, ...toolsNow()]
    },
    offered: ({ messages, before }) => {
      const names = new Set(toolsNow().map(({ name }) => name))
      const fixed = [toolName, ...always]
      const latest = latestNames({ messages, before }, toolName)
      const shown = new Set(
        latest.filter((name) => names.has(name) && !fixed.includes(name)).slice(0, maxShown),
      )
      // What was shown before keeps its place, so that a provider finds the beginning of the request again.
      const inPlace = before.filter((name) => shown.has(name))
      return [...fixed, ...new Set([...inPlace, ...shown])]
    },
  }
}

/** Tools may be written without a compiler, and a source may list any. */
function isTool(value: unknown): boolean {
  const { name, description, check } = Object(value) as Partial<Tool>
  return typeof name === 'string' && typeof description === 'string' && typeof check === 'function'
}

function listedBy<Context>(
  given: readonly Tool<Context>[] | ToolSource<Context>,
): () => readonly Tool<Context>[] {
  if ('tools' in given) return () => given.tools.filter(isTool)
  const tools = [...given]
  return () => tools
}

/** The names that were used or found, the latest first, then those of the last turn that the conversation tells no more of. */
function latestNames({ messages, before }: OfferingTurn, searchName: string): readonly string[] {
  return [...new Set([...namesBack(messages(), searchName), ...before.toReversed()])]
}

/** Makes an index anew only where the tools are others than before. */
function keptIndex(): (tools: readonly Tool<never>[]) => ToolIndex {
  let known: { readonly tools: readonly Tool<never>[]; readonly index: ToolIndex } | undefined
  return (tools) => {
    const isSame =
      known?.tools.length === tools.length && tools.every((tool, at) => tool === known?.tools[at])
    if (known === undefined || !isSame) known = { tools, index: toolIndex(tools) }
    return known.index
  }
}

function requireNames(tools: readonly Tool<never>[], always: readonly string[], toolName: string): void {
  const names = tools.map(({ name }) => name)
  const missing = always.find((name) => !names.includes(name))
  if (missing !== undefined) {
    throw new ConfigurationError(
      `searchableTools: always names ${missing}, and no tool has that name. Name one of the tools.`,
    )
  }
  if (names.includes(toolName)) {
    throw new ConfigurationError(
      `searchableTools: one of the tools has the name ${toolName} of the tool that searches. Give that another one with toolName.`,
    )
  }
}
