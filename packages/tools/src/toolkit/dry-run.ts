import type { Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type { CallVerdict, JsonObject } from '@tallystick/core/vocabulary'
import { boundedText } from '../content/bounded-text.ts'

/** How writes are described. */
export interface DryRunOptions {
  /** Returns what a call would have done, in words. Default: its tool and its input. */
  readonly describe?: ((call: { readonly tool: string; readonly input: JsonObject }) => string) | undefined
}

const { anyFunction, fields, listOf, maybe, valueThat } = option
const dryRunOptions = fields<DryRunOptions>({ describe: maybe(anyFunction) })
const toolList = listOf(valueThat('a tool', (value) => typeof Object(value).check === 'function'))

const maxDescription = 2_000

/**
 * Returns the same tools, of which those that write do not run: each of their calls is checked, and then ends as
 * `skipped` with a text that says what it would have done. Nothing is started, and no approval is asked. Reads and
 * handoffs run.
 */
export function dryRun<Context>(
  tools: readonly Tool<Context>[],
  options: DryRunOptions = {},
): readonly Tool<Context>[] {
  requireOptions('dryRun', fields<{ readonly tools: readonly object[] }>({ tools: toolList }), { tools })
  requireOptions('dryRun', dryRunOptions, options)
  return tools.map((tool) =>
    tool.effect === 'read' || tool.handoff ? tool : described(tool, options.describe),
  )
}

function described<Context>(tool: Tool<Context>, describe: DryRunOptions['describe']): Tool<Context> {
  const { name } = tool
  return Object.freeze({
    ...tool,
    check: async (input: JsonObject, context: Parameters<typeof tool.check>[1]): Promise<CallVerdict> => {
      const verdict = await tool.check(input, context)
      if (verdict.kind === 'refuse') return verdict
      const asked =
        verdict.kind === 'ask' ? ` A person would have been asked first${why(verdict.reason)}.` : ''
      const text =
        `This is a dry run, in which nothing is changed. ${whatOf(name, input, describe)}${asked} ` +
        'Continue as if it were done, and say in your answer that it was not.'
      return { kind: 'refuse', outcome: 'skipped', text }
    },
    // A tool that writes is never run.
    run: () => {
      throw new TypeError(`The tool ${name} is part of a dry run`)
    },
  })
}

function whatOf(tool: string, input: JsonObject, describe: DryRunOptions['describe']): string {
  const plain = `${tool} would have been called with ${boundedText(JSON.stringify(input), maxDescription)}.`
  try {
    const ownText: unknown = describe?.({ tool, input })
    return typeof ownText === 'string' && ownText !== '' ? boundedText(ownText, maxDescription) : plain
  } catch {
    return plain
  }
}

function why(reason: string | undefined): string {
  return reason === undefined ? '' : ` (${boundedText(reason, maxDescription)})`
}
