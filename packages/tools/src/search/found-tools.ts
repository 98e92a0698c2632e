import type { Message } from '@tallystick/core'
import { textOf, type ToolResult } from '@tallystick/core/vocabulary'
import { boundedText } from '../content/bounded-text.ts'

const maxDescription = 300

/** What a search tells the model, as JSON: it is read again to know what was found. */
interface Found {
  readonly found: readonly { readonly name: string; readonly description: string }[]
  readonly note: string
}

/** The answer of a search that found these tools. */
export function foundAnswer(
  tools: readonly { readonly name: string; readonly description: string }[],
): Found | string {
  return tools.length === 0
    ? 'No tool fits these words. Search with other words for what it should do, or continue without it.'
    : {
        found: tools.map(({ name, description }) => ({
          name,
          description: boundedText(description, maxDescription),
        })),
        note: 'You can call these tools from now on.',
      }
}

/**
 * The names of the tools that a conversation used or found, the latest first; of searches of one reply first all that came
 * first, then all that came second.
 */
export function* namesBack(messages: readonly Message[], searchName: string): Generator<string> {
  for (const message of messages.toReversed()) {
    if (message.role !== 'tool') continue
    for (const { name, outcome } of message.results) if (outcome !== 'unknown_tool') yield name
    const found = message.results.filter(({ name }) => name === searchName).flatMap(namesFound)
    yield* found.toSorted((a, b) => a.rank - b.rank).map(({ name }) => name)
  }
}

/**
 * The names in a result of a search, each with its place in it: none where the search failed, or its result was cut or
 * changed on its way to the model.
 */
function namesFound({ content }: ToolResult): readonly { readonly name: string; readonly rank: number }[] {
  try {
    const { found } = JSON.parse(textOf(content)) as Found
    return found.map(({ name }, rank) => ({ name, rank }))
  } catch {
    return []
  }
}
