import { dirname, relative, resolve, sep } from 'node:path'
import { type Agent, ConfigurationError, withRuntimeRules } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { outlineTo } from '@tallystick/ledger'
import { type Divergence, exportRegression, type ReplayReport, replayRun } from '@tallystick/replay'
import type { Command } from 'commander'
import { declareRunArguments } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'
import { formatCount } from '../command/text.ts'
import { openAgents, type RunWithAgents } from '../drive/agents.ts'
import { findConfig } from '../drive/config.ts'
import { type NamedRun, withRun } from '../runs/find-run.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'
import { formatDifferences } from '../view/difference-text.ts'
import { formatEvent } from '../view/events.ts'

interface ReplayOptions {
  readonly recordedDefinitions?: boolean
  readonly config?: string
}

const maxEventCharacters = 160

/** Declares `replay`: the run is driven with today's agent, without model calls and tools. */
export function declareReplay(verb: Command, context: CommandContext, done: Done): void {
  declareRunArguments(
    verb,
    'drive a run again with its recorded streams and results, and report where it differs',
  )
    .option(
      '--recorded-definitions',
      'take instructions, tools and schemas from the record, so that only the behaviour of the code is compared',
    )
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .action(async (ledger: string, run: string, options: ReplayOptions) => {
      done(await replay(context, { ledger, run }, options))
    })
}

/** Returns exit code 3 if an event differs from the recorded one. */
function replay(context: CommandContext, named: NamedRun, options: ReplayOptions): Promise<ExitCode> {
  const { config, recordedDefinitions } = options
  return openAgents(context, { ...named, config, verb: 'replay' }, async (found) => {
    const { ledger, state, rules, context: own } = found
    const agents = found.agents.map((agent) => withRuntimeRules(agent, rules))
    const definitions = recordedDefinitions === true ? 'recorded' : 'today'
    const report = await withProgress(
      context,
      async () => state.seq,
      ({ add }) =>
        replayRun(ledger, state.runId, (name) => findAgent(agents, name), {
          definitions,
          onEvents: add,
          context: own,
        }),
    )
    const { divergence } = report
    await printEither(context, report, formatReport(report, context.paint))
    if (!context.json) {
      const next =
        divergence === undefined
          ? await formatChildrenAdvice(context, found, named.ledger, config)
          : formatDefinitionsAdvice(context, divergence, named, options)
      if (next !== undefined) context.say(next)
    }
    return divergence === undefined ? exitCodes.ok : exitCodes.diverged
  })
}

function findAgent(agents: readonly Agent<unknown>[], name: string): Agent<unknown> {
  const agent = agents.find((candidate) => candidate.name === name)
  if (agent !== undefined) return agent
  throw new ConfigurationError(
    `The configuration has no agent named ${name}, which the run was recorded with, so it cannot be driven again. ` +
      'Add the agent, or name another configuration with --config FILE.',
  )
}

function formatReport({ runId, events, divergence }: ReplayReport, paint: Paint): string {
  const again = `${runId}  ${formatCount(events, 'event')} happened again as recorded`
  if (divergence === undefined) return `${again}\n`
  return `${again}, then:\n${formatDivergence(divergence, paint)}`
}

function formatDivergence({ seq, recorded, happened, differences }: Divergence, paint: Paint): string {
  const event = recorded ?? happened
  const turn = event === undefined || event.turn === 0 ? 'before the first turn' : `in turn ${event.turn}`
  const sides = ['recorded', 'happened'] as const
  if (recorded?.type === happened?.type && recorded !== undefined) {
    const what = formatEvent(recorded, maxEventCharacters)
    return `${paint('bold', `event ${seq}, ${turn}: ${what}`)}\n${formatDifferences(differences, sides)}`
  }
  const [before, after] = [recorded, happened].map((each) =>
    each === undefined ? 'nothing' : formatEvent(each, maxEventCharacters),
  )
  return `${paint('bold', `event ${seq}, ${turn}`)}\n  recorded ${before}\n  happened ${after}\n`
}

/** If the definition of the agent changed: the command that compares only what its code does. */
function formatDefinitionsAdvice(
  { programName }: CommandContext,
  { recorded, differences }: Divergence,
  { ledger, run }: NamedRun,
  { config, recordedDefinitions }: ReplayOptions,
): string | undefined {
  const isDefinition = differences.some(({ path }) => /^definition(\.|$)/.test(path))
  if (recorded === undefined || !isDefinition || recordedDefinitions === true) return undefined
  const again = formatCommand(
    programName,
    ...['replay', ledger, run, '--recorded-definitions', ...toConfigWords(config)],
  )
  return `Today's definition of the agent differs from the recorded one, so the model may answer differently. This compares only what the code does:\n  ${again}`
}

/** A replay takes the results of child runs from the record: the commands that replay the child runs themselves. */
async function formatChildrenAdvice(
  { programName }: CommandContext,
  { ledger, state }: RunWithAgents,
  ledgerPath: string,
  config: string | undefined,
): Promise<string | undefined> {
  if (state.totals.children.runs === 0) return undefined
  const { outline } = await outlineTo(ledger, state.runId)
  const commands = outline.children.map(
    (runId) => `  ${formatCommand(programName, 'replay', ledgerPath, runId, ...toConfigWords(config))}`,
  )
  return `The results of its child runs were taken from the record. These commands replay the child runs:\n${commands.join('\n')}`
}

function toConfigWords(config: string | undefined): readonly string[] {
  return config === undefined ? [] : ['--config', config]
}

interface RegressionOptions {
  readonly out: string
  readonly config?: string
  readonly recordedDefinitions?: boolean
  /** Patterns of further secrets. */
  readonly redact?: readonly string[]
}

/** Declares `regression`. */
export function declareRegression(verb: Command, context: CommandContext): void {
  declareRunArguments(verb, "write a run as a test that vitest runs offline against today's agents")
    .requiredOption('--out <file>', 'the test file to write; an export of the run goes beside it')
    .option('--config <file>', 'file that exports the agents (default: the nearest tallystick.config.ts)')
    .option('--redact <patterns...>', 'regular expressions of further secrets to mask')
    .option(
      '--recorded-definitions',
      'take instructions, tools and schemas from the record, so that only the behaviour of the code is tested',
    )
    .action((ledger: string, run: string, options: RegressionOptions) =>
      writeRegression(context, { ledger, run }, options),
    )
}

async function writeRegression(
  context: CommandContext,
  named: NamedRun,
  { out, config: file, recordedDefinitions, redact = [] }: RegressionOptions,
): Promise<void> {
  const { workingDirectory } = context
  const secrets = redact.map(parsePattern)
  await withRun(context, named, 'read', async (ledger, runId) => {
    const source = findConfig({ workingDirectory, ...omitUndefined({ file }) })
    const testFile = resolve(workingDirectory, out)
    const written = await exportRegression(ledger, runId, {
      file: testFile,
      agents: { from: toImportPath(testFile, source) },
      secrets,
      definitions: recordedDefinitions === true ? 'recorded' : 'today',
    })
    const { test, fixture, events, redacted } = written
    await printEither(context, written, `${test}\n${fixture}\n`)
    if (context.json) return
    context.say(
      `${formatCount(events, 'event')} of run ${runId}; secrets were masked in ${redacted} of them. ` +
        `Look at the fixture before you commit it, then run: npx vitest run ${out}`,
    )
  })
}

/** The path by which a file imports another. */
function toImportPath(file: string, other: string): string {
  const path = relative(dirname(file), other).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch (cause) {
    throw new CommandError(
      'usage',
      `--redact ${text} is not a regular expression. Escape the characters that are meant literally.`,
      {
        cause,
      },
    )
  }
}
