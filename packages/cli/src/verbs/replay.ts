import { dirname, relative, resolve, sep } from 'node:path'
import { type Agent, ConfigurationError, withRuntimeRules } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { readOutline } from '@tallystick/ledger'
import { type Divergence, exportRegression, type ReplayReport, replayRun } from '@tallystick/replay'
import type { Command } from '@commander-js/extra-typings'
import { configHelp, declareRunArguments } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { CommandError, exitCodes } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'
import { formatCount } from '../command/text.ts'
import { openAgents } from '../drive/agents.ts'
import { findConfig } from '../drive/config.ts'
import { withRun } from '../runs/find-run.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'
import { formatDifferences } from '../view/difference-text.ts'
import { formatEvent } from '../view/events.ts'

const maxEventCharacters = 160

/**
 * Declares `replay`: the run is driven with today's agent, without model calls and tools. Exit code 3 if an event differs from the
 * recorded one.
 */
export function declareReplay(verb: Command, context: CommandContext, done: Done): void {
  declareRunArguments(
    verb,
    'drive a run again with its recorded streams and results, and report where it differs',
  )
    .option(
      '--recorded-definitions',
      'take instructions, tools and schemas from the record, so that only the behaviour of the code is compared',
    )
    .option('--config <file>', configHelp)
    .action(async (ledgerPath, run, { config, recordedDefinitions }) => {
      const asked = { verb: 'replay', ledger: ledgerPath, run, config } as const
      await openAgents(context, asked, async (found) => {
        const { ledger, state, rules, context: own } = found
        const agents = found.agents.map((agent) => withRuntimeRules(agent, rules))
        const report = await withProgress(
          context,
          async () => state.seq,
          ({ add }) =>
            replayRun(ledger, state.runId, (name) => findAgent(agents, name), {
              definitions: recordedDefinitions ? 'recorded' : 'today',
              onEvents: add,
              context: own,
            }),
        )
        const { divergence } = report
        await printEither(context, report, formatReport(report, context.paint))
        const command = (runId: string, ...words: readonly string[]): string =>
          `\n  ${formatCommand(
            context.programName,
            ...['replay', ledgerPath, runId, ...words],
            ...(config === undefined ? [] : ['--config', config]),
          )}`
        const isDefinition = divergence?.differences.some(({ path }) => /^definition(\.|$)/.test(path))
        if (!context.json && divergence?.recorded && isDefinition && !recordedDefinitions) {
          context.say(
            `Today's definition of the agent differs from the recorded one, so the model may answer differently. This compares only what the code does:${command(run, '--recorded-definitions')}`,
          )
        }
        if (!context.json && divergence === undefined && state.totals.children.runs > 0) {
          const { outline } = await readOutline(ledger, state.runId)
          const commands = outline.children.map((runId) => command(runId))
          context.say(
            `The results of its child runs were taken from the record. These commands replay the child runs:${commands.join('')}`,
          )
        }
        done(divergence === undefined ? exitCodes.ok : exitCodes.diverged)
      })
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

export function declareRegression(verb: Command, context: CommandContext): void {
  declareRunArguments(verb, "write a run as a test that vitest runs offline against today's agents")
    .requiredOption('--out <file>', 'the test file to write; an export of the run goes beside it')
    .option('--config <file>', configHelp)
    .option('--redact <patterns...>', 'regular expressions of further secrets to mask')
    .option(
      '--recorded-definitions',
      'take instructions, tools and schemas from the record, so that only the behaviour of the code is tested',
    )
    .action(async (ledgerPath, run, { out, config: file, recordedDefinitions, redact = [] }) => {
      const { workingDirectory } = context
      const secrets = redact.map(parsePattern)
      await withRun(context, { ledger: ledgerPath, run }, 'read', async (ledger, runId) => {
        const source = findConfig({ workingDirectory, ...omitUndefined({ file }) })
        const testFile = resolve(workingDirectory, out)
        const path = relative(dirname(testFile), source).split(sep).join('/')
        const written = await exportRegression(ledger, runId, {
          file: testFile,
          agents: { from: path.startsWith('.') ? path : `./${path}` },
          secrets,
          definitions: recordedDefinitions ? 'recorded' : 'today',
        })
        const { test, fixture, events, redacted } = written
        await printEither(context, written, `${test}\n${fixture}\n`)
        if (context.json) return
        context.say(
          `${formatCount(events, 'event')} of run ${runId}; secrets were masked in ${redacted} of them. ` +
            `Look at the fixture before you commit it, then run: npx vitest run ${out}`,
        )
      })
    })
}

/** A pattern of `--redact`. */
export function parsePattern(text: string): RegExp {
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
