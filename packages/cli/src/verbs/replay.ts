import { ConfigurationError } from '@tallystick/core'
import type { Agent } from '@tallystick/core'
import type { Divergence } from '@tallystick/ledger'
import { replayRun } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { differencesText } from '../view/difference-text.ts'
import { counted } from '../view/run-ending.ts'
import { withAgents } from '../with-agents.ts'

/** What `replay` was given. */
export interface ReplayOptions {
  readonly ledger: string
  readonly run: string
  readonly config?: string
}

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
  return `${head}${differencesText(differences, ['recorded', 'happened'])}`
}
