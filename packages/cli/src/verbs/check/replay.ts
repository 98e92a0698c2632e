import { ConfigurationError, type Agent } from '@tallystick/core'
import { withRuntimeRules } from '@tallystick/core/kit'
import { outlineTo } from '@tallystick/ledger'
import type { Divergence, ReplayReport } from '@tallystick/replay'
import { replayRun } from '@tallystick/replay'
import type { CommandContext } from '../../command/command-context.ts'
import { commandLine } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { exitCodes } from '../../command/exit-code.ts'
import { differencesText } from '../../view/text/difference-text.ts'
import { eventText } from '../../view/run/event-text.ts'
import type { Paint } from '../../terminal/paint.ts'
import { withProgress } from '../../view/text/progress.ts'
import { counted } from '../../view/text/run-ending.ts'
import { openAgents, type RunWithAgents } from '../../config/open-agents.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'

/** What `replay` was given. */
export interface ReplayVerbOptions {
  readonly ledger: string
  readonly run: string
  /** Takes the definitions of the agents from the record: instructions, tools, schemas. */
  readonly recordedDefinitions?: boolean
  readonly config?: string
}

const maxEventCharacters = 160

/** Declares what `replay` takes. */
export function declareReplay(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'drive a run again with its recorded streams and results, and report where it differs')
    .argument('<run>', 'id of the run')
    .option(
      '--recorded-definitions',
      'take instructions, tools and schemas from the record, so that only the behaviour of the code is compared',
    )
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .action(async (ledger: string, run: string, options: Omit<ReplayVerbOptions, 'ledger' | 'run'>) => {
      done(await replay(context, { ledger, run, ...options }))
    })
}

/**
 * `replay`: drives a run again from its recorded inputs and results, with today's agent, without any model call or
 * tool. Exit code 3 if an event differs from the recorded one.
 */
export function replay(context: CommandContext, options: ReplayVerbOptions): Promise<ExitCode> {
  return openAgents(context, { ...options, verb: 'replay' }, async (found) => {
    const { ledger, state, rules, context: own } = found
    const agents = found.agents.map((agent) => withRuntimeRules(agent, rules))
    const definitions = options.recordedDefinitions === true ? 'recorded' : 'today'
    const report = await withProgress(
      context,
      async () => state.seq,
      ({ add }) =>
        replayRun(ledger, state.runId, (name) => agentNamed(agents, name), {
          definitions,
          onEvents: add,
          context: own,
        }),
    )
    const { divergence } = report
    await context.print(context.json ? `${JSON.stringify(report)}\n` : reportText(report, context.paint))
    if (divergence !== undefined) printNextCommands(context, divergence, options)
    else await printOtherRuns(context, found, options)
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

function reportText({ runId, events, divergence }: ReplayReport, paint: Paint): string {
  const again = `${runId}  ${counted(events, 'event')} happened again as recorded`
  if (divergence === undefined) return `${again}\n`
  return `${again}, then:\n${divergenceText(divergence, paint)}`
}

function divergenceText({ seq, recorded, happened, differences }: Divergence, paint: Paint): string {
  const event = recorded ?? happened
  const turn = event === undefined || event.turn === 0 ? 'before the first turn' : `in turn ${event.turn}`
  const sides = ['recorded', 'happened'] as const
  if (recorded?.type === happened?.type && recorded !== undefined) {
    const what = eventText(recorded, maxEventCharacters)
    return `${paint('bold', `event ${seq}, ${turn}: ${what}`)}\n${differencesText(differences, sides)}`
  }
  const [before, after] = [recorded, happened].map((each) =>
    each === undefined ? 'nothing' : eventText(each, maxEventCharacters),
  )
  return `${paint('bold', `event ${seq}, ${turn}`)}\n  recorded ${before}\n  happened ${after}\n`
}

/** If the words of the agent changed, prints the command that compares only what its code does. */
function printNextCommands(
  { json, programName, say }: CommandContext,
  { recorded, differences }: Divergence,
  { ledger, run, config, recordedDefinitions }: ReplayVerbOptions,
): void {
  const isWords = differences.some(({ path }) => /^definition(\.|$)/.test(path))
  if (json || recorded === undefined || !isWords || recordedDefinitions === true) return
  const own = config === undefined ? [] : ['--config', config]
  const again = commandLine(programName, 'replay', ledger, run, '--recorded-definitions', ...own)
  say(
    `Today's definition of the agent differs from the recorded one, so the model may answer differently. This compares only what the code does:\n  ${again}`,
  )
}

/** A replay serves the recorded results of child runs, so each child run is replayed with a command of its own. */
async function printOtherRuns(
  { json, programName, say }: CommandContext,
  { ledger, state }: RunWithAgents,
  { ledger: ledgerPath, config }: ReplayVerbOptions,
): Promise<void> {
  if (json || state.totals.children.runs === 0) return
  const { outline } = await outlineTo(ledger, state.runId)
  const own = config === undefined ? [] : ['--config', config]
  const commands = outline.children.map(
    (runId) => `  ${commandLine(programName, 'replay', ledgerPath, runId, ...own)}`,
  )
  say(
    `The results of its child runs were taken from the record. These commands replay the child runs:\n${commands.join('\n')}`,
  )
}
