import { ConfigurationError, type Message, joinText, type Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import type { AnyContext, ToolResult, ToolSource } from '@tallystick/core/vocabulary'
import { defineTool } from '../define/define-tool.ts'
import { boundText } from '../define/text.ts'

/** Which tools a model is shown before it searches, and how many after. */
export interface SearchableToolsOptions {
  /** Names of tools that are always shown. */
  readonly always?: readonly string[] | undefined
  /** How many tools that were found are shown at the same time, those of `always` not counted. Default: 20. */
  readonly maxShown?: number | undefined
  /** How many tools one search finds. Default: 5. */
  readonly maxFound?: number | undefined
  /** The subjects of the tools, in a few words for the model, such as "GitHub, Slack and the calendar". */
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
  const listed = 'tools' in tools ? tools : [...tools]
  const toolsNow = (): readonly Tool<Context>[] => ('tools' in listed ? listed.tools.filter(isTool) : listed)
  if (Array.isArray(tools)) {
    const names = toolsNow().map(({ name }) => name)
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
    // The names are read from the result later, so it must not be cut.
    maxResultChars: 1_000_000,
    execute: (input) => {
      const now = toolsNow()
      const names = findTools(now, (input as { query: string }).query)
      return writeFound(
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
      // The latest first, then those of the last turn that the conversation no longer mentions.
      const latest = [...new Set([...readFoundNames(messages(), toolName), ...before.toReversed()])]
      const shown = new Set(
        latest.filter((name) => names.has(name) && !fixed.includes(name)).slice(0, maxShown),
      )
      // Tools that were shown before keep their places, so that the provider can reuse its cached prefix.
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

const maxDescription = 300

/** The answer of a search, as JSON: it is read again to know what was found. */
interface Found {
  readonly found: readonly { readonly name: string; readonly description: string }[]
  readonly note: string
}

/** The answer of a search that found these tools. */
export function writeFound(
  tools: readonly { readonly name: string; readonly description: string }[],
): Found | string {
  return tools.length === 0
    ? 'No tool fits these words. Search with other words for what it should do, or continue without it.'
    : {
        found: tools.map(({ name, description }) => ({
          name,
          description: boundText(description, maxDescription),
        })),
        note: 'You can call these tools from now on.',
      }
}

/**
 * The names of the tools that a conversation used or found, the latest first; of searches of one reply first all that came
 * first, then all that came second.
 */
export function* readFoundNames(messages: readonly Message[], searchName: string): Generator<string> {
  for (const message of messages.toReversed()) {
    if (message.role !== 'tool') continue
    for (const { name, outcome } of message.results) if (outcome !== 'unknown_tool') yield name
    const found = message.results.filter(({ name }) => name === searchName).flatMap(readNames)
    yield* found.toSorted((a, b) => a.rank - b.rank).map(({ name }) => name)
  }
}

/**
 * The names in a result of a search, each with its place in it: none if the search failed, or its result was cut or
 * changed on its way to the model.
 */
function readNames({ content }: ToolResult): readonly { readonly name: string; readonly rank: number }[] {
  try {
    const { found } = JSON.parse(joinText(content)) as Found
    return found.map(({ name }, rank) => ({ name, rank }))
  } catch {
    return []
  }
}

const maxLength = 4_000

/**
 * The words of a text as they are compared: names in camelCase, snake_case and kebab-case fall apart, accents and endings
 * such as those of plurals go.
 */
export function readWords(text: string): readonly string[] {
  const apart = text
    .slice(0, maxLength)
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
  return Array.from(apart.matchAll(/\p{L}+|\p{N}+/gu), ([word]) => {
    // `creating`, `creates` and `create` are one word, and so are `reply` and `replies`.
    const stem = word.replace(/(?:ing|ed|es|s|e)$/, '')
    return (stem.length < 3 ? word : stem).replace(/y$/, 'i')
  })
}

/** How much more a word counts in a name than in a description, and how much less where only its input has it. */
const weights = { name: 3, description: 1, input: 0.5 }

/** The usual constants of BM25: how soon more of the same word counts no more, and how much long texts lose. */
const saturation = 1.2
const lengthShare = 0.75

/** How much a word counts that begins with the asked one, or that the asked one begins with. */
const shareOfBeginning = 0.5
const leastBeginning = 3

/** Returns the names of the tools that have any of the words in their names, descriptions and inputs, the best first, by BM25. */
export function findTools(
  tools: readonly Pick<Tool, 'name' | 'description' | 'inputSchema'>[],
  query: string,
): readonly string[] {
  const entries = tools.map(({ name, description, inputSchema }) => {
    const words = new Map<string, number>()
    const add = (text: string, weight: number): void => {
      for (const word of readWords(text)) words.set(word, (words.get(word) ?? 0) + weight)
    }
    add(name, weights.name)
    add(description, weights.description)
    add(Object.keys(Object(inputSchema['properties']) as object).join(' '), weights.input)
    return { name, words, length: [...words.values()].reduce((sum, weight) => sum + weight, 0) }
  })
  const meanLength = entries.reduce((sum, { length }) => sum + length, 0) / entries.length
  const counts = new Map<string, number>()
  for (const { words } of entries)
    for (const word of words.keys()) counts.set(word, (counts.get(word) ?? 0) + 1)

  const asked = readAskedWords(query, counts)
  const exact = query.trim().toLowerCase()
  const scored = entries.map(({ name, words, length }) => {
    const norm = saturation * (1 - lengthShare + (lengthShare * length) / meanLength)
    let score = name.toLowerCase() === exact ? Number.MAX_VALUE : 0
    for (const [word, share] of asked) {
      const weight = words.get(word) ?? 0
      const rarity = Math.log((entries.length + 1) / ((counts.get(word) as number) + 0.5))
      score += (share * rarity * weight) / (weight + norm)
    }
    return { name, score }
  })
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .map(({ name }) => name)
}

/** The words of the tools that are asked for: each one itself, or where no tool has it, those that share its beginning. */
function readAskedWords(query: string, known: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const asked = new Map<string, number>()
  for (const word of readWords(query)) {
    if (known.has(word)) {
      asked.set(word, 1)
      continue
    }
    for (const other of known.keys()) {
      const isLong = Math.min(word.length, other.length) >= leastBeginning
      if (isLong && (word.startsWith(other) || other.startsWith(word)))
        asked.set(other, Math.max(shareOfBeginning, asked.get(other) ?? 0))
    }
  }
  return asked
}
