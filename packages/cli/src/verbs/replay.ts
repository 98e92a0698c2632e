import { ConfigurationError } from '@tallystick/core'
import type { Agent } from '@tallystick/core'
import type { Difference, Divergence } from '@tallystick/ledger'
import { replayRun } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { oneLine } from '../view/content-text.ts'
import { counted } from '../view/run-ending.ts'
import { withAgents } from '../with-agents.ts'

/** What `replay` was given. */
export interface ReplayOptions {
  readonly ledger: string
  readonly run: string
  readonly config?: string
}

const differencesMax = 20
const valueCharactersMax = 200
/** Characters shown of what two long values have in common, in front of the first that differs. */
const charactersBefore = 40

/**
 * `replay`: drives a run again with what it was told from outside, by today's agent, without any model call or tool.
 * Exit code 3 where an event comes out otherwise than it was recorded.
 */
export function replay(context: CommandContext, options: ReplayOptions): Promise<ExitCode> {
  return withAgents(context, { ...options, verb: 'replay' }, async ({ ledger, state, agents }) => {
    const report = await replayRun(ledger, state.runId, (name) => agentNamed(agents, name))
    const { runId, events, divergence } = report
    const again = `${runId}  ${counted(events, 'event')} happened again as recorded`
    if (context.json) await context.print(`${JSON.stringify(report)}\n`)
    else
      await context.print(
        divergence === undefined ? `${again}\n` : `${again}, then:\n${divergenceText(divergence)}`,
      )
    return divergence === undefined ? exitCodes.ok : exitCodes.diverged
  })
}

function agentNamed(agents: readonly Agent<unknown>[], name: string): Agent<unknown> {
  const agent = agents.find((candidate) => candidate.name === name)
  if (agent !== undefined) return agent
  throw new ConfigurationError(
    `The configuration has no agent named ${name}, which the run was recorded with, so it cannot be driven again. ` +
      'Add the agent, or name another configuration with --config FILE.',
  )
}

function divergenceText({ seq, recorded, happened, differences }: Divergence): string {
  const head = `event ${seq}: recorded ${recorded?.type ?? 'nothing'}, happened ${happened?.type ?? 'nothing'}\n`
  const shown = differences.slice(0, differencesMax).map(differenceText)
  const left = differences.length - shown.length
  return `${head}${shown.join('')}${left > 0 ? `  and ${left} more\n` : ''}`
}

function differenceText({ path, recorded, happened }: Difference): string {
  const [before, after] = [valueText(recorded), valueText(happened)]
  const from = Math.max(0, sameCharacters(before, after) - charactersBefore)
  const show = (text: string): string => (from > 0 ? '…' : '') + oneLine(text.slice(from), valueCharactersMax)
  return `  ${path}\n    recorded ${show(before)}\n    happened ${show(after)}\n`
}

function valueText(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}

/** How many characters two texts begin with alike. */
function sameCharacters(a: string, b: string): number {
  let count = 0
  while (count < a.length && a[count] === b[count]) count++
  return count
}
