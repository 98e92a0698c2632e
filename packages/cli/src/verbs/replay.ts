import { dirname, relative, resolve, sep } from 'node:path'
import { type Agent, ConfigurationError, withRuntimeRules } from '@tallystick/core'
import { outlineTo } from '@tallystick/ledger'
import { type Divergence, exportRegression, type ReplayReport, replayRun } from '@tallystick/replay'
import type { Command } from 'commander'
import { onLedger } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'
import { counted } from '../command/text.ts'
import { openAgents, type RunWithAgents } from '../drive/agents.ts'
import { configPath } from '../drive/config.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'
import { differencesText } from '../view/difference-text.ts'
import { eventText } from '../view/events.ts'

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

/** What `regression` was given. */
export interface RegressionVerbOptions {
  readonly ledger: string
  readonly run: string
  /** The test file to write. */
  readonly out: string
  readonly config?: string
  /** Lets the test take the definitions of the agents from the record. */
  readonly recordedDefinitions?: boolean
  /** Patterns of what else is a secret. */
  readonly redact?: readonly string[]
}

/** Declares what `regression` takes. */
export function declareRegression(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, "write a run as a test that vitest runs offline against today's agents")
    .argument('<run>', 'id of the run')
    .requiredOption('--out <file>', 'the test file to write; an export of the run goes beside it')
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .option('--redact <patterns...>', 'regular expressions of further secrets to mask')
    .option(
      '--recorded-definitions',
      'take instructions, tools and schemas from the record, so that only the behaviour of the code is tested',
    )
    .action(async (ledger: string, run: string, options: Omit<RegressionVerbOptions, 'ledger' | 'run'>) => {
      done(await regression(context, { ledger, run, ...options }))
    })
}

/** `regression`: writes a run as a test that vitest runs offline against today's agents, with its secrets masked. */
export function regression(context: CommandContext, options: RegressionVerbOptions): Promise<ExitCode> {
  const { json, print, programName, say, workingDirectory } = context
  const { ledger: ledgerPath, run, out, config, recordedDefinitions, redact = [] } = options
  const secrets = redact.map(patternOf)
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const source = configPath({ workingDirectory, ...(config !== undefined && { file: config }) })
    const file = resolve(workingDirectory, out)
    const from = importFrom(file, source)
    const definitions = recordedDefinitions === true ? 'recorded' : 'today'
    const written = await exportRegression(ledger, runId, { file, agents: { from }, secrets, definitions })
    if (json) await print(`${JSON.stringify(written)}\n`)
    else {
      const { test, fixture, events, redacted } = written
      await print(`${test}\n${fixture}\n`)
      say(
        `${counted(events, 'event')} of run ${runId}; secrets were masked in ${redacted} of them. ` +
          `Look at the fixture before you commit it, then run: npx vitest run ${out}`,
      )
    }
    return exitCodes.ok
  })
}

/** How a file imports another one by path. */
function importFrom(file: string, other: string): string {
  const path = relative(dirname(file), other).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

function patternOf(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (cause) {
    throw new CommandError(
      'usage',
      `--redact ${text} is no regular expression. Escape the characters that are meant literally.`,
      {
        cause,
      },
    )
  }
}
