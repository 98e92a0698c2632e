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
    const searches = message.results.filter(({ name }) => name === searchName).map(namesFound)
    const most = Math.max(0, ...searches.map(({ length }) => length))
    for (let rank = 0; rank < most; rank++) yield* searches.flatMap((names) => names.slice(rank, rank + 1))
  }
}

/** The names in a result of a search: none where it failed, or was cut or changed on its way to the model. */
function namesFound({ content }: ToolResult): readonly string[] {
  try {
    const { found } = JSON.parse(textOf(content)) as Partial<Found>
    return (found ?? []).map(({ name }) => name)
  } catch {
    return []
  }
}
