import { resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import {
  collectCases,
  evaluate,
  type Evaluation,
  type EvaluationReport,
  type EvaluationSource,
  formatReport,
} from '@tallystick/evals'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { declareLedger, parseFilled, parseWholeNumber } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printJson } from '../command/context.ts'
import { CommandError, exitCodes, type ExitCode } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'
import { formatCount } from '../command/text.ts'
import { addCondition, parseScore, whereHelp } from '../command/where.ts'
import { importConfig } from '../drive/config.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { keepAlive, runUntilStopped } from '../terminal/wait.ts'
import type { Done } from '../verbs.ts'
import { parsePattern } from './replay.ts'

/** Declares `dataset`. stdout has the cases, one a line as JSON. */
export function declareDataset(verb: Command, context: CommandContext): void {
  declareLedger(verb, 'print runs as cases for an evaluation, one JSON object per line, the newest first')
    .option('--where <condition>', whereHelp, addCondition)
    .option('--run <runs...>', 'these runs, in place of --where')
    .option('--limit <n>', 'at most this many', parseWholeNumber)
    .option('--redact <patterns...>', 'regular expressions of further secrets to mask')
    .action(async (ledgerPath, { where, run: named, limit = Infinity, redact = [] }) => {
      const secrets = redact.map(parsePattern)
      await withLedger(ledgerPath, 'read', async (ledger) => {
        let count = 0
        const skipped = new Map<string, number>()
        const onSkipped = (_run: string, reason: string): void =>
          void skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
        const place = { programName: context.programName, ledgerPath }
        const runs = named && (await Promise.all(named.map((each) => findRun(ledger, each, place))))
        const options = { where: where?.filter ?? {}, runs, secrets, onSkipped }
        if (limit > 0) {
          for await (const each of collectCases(ledger, options)) {
            await context.printData(`${JSON.stringify(each)}\n`)
            if (++count >= limit) break
          }
        }
        const left = [...skipped].map(([reason, runs]) => `${formatCount(runs, 'run')} left out: ${reason}.`)
        context.say([`${formatCount(count, 'case')}.`, ...left].join(' '))
      })
    })
}

/** The least mean of a scorer, or of all of them. */
interface LeastScore {
  readonly scorer?: string
  readonly least: number
}

function addLeast(text: string, before: readonly LeastScore[] = []): readonly LeastScore[] {
  const at = text.lastIndexOf('=')
  const least = parseScore(text.slice(at + 1))
  if (least < 0 || least > 1) throw new InvalidArgumentError('A score is from 0 to 1.')
  return [...before, { least, ...(at > 0 && { scorer: text.slice(0, at) }) }]
}

/** Declares `evaluate`. Exit code 1 if a score is under `--min`, or a run has none. Ctrl-C loses nothing. */
export function declareEvaluate(verb: Command, context: CommandContext, done: Done): void {
  declareLedger(verb, 'run cases with your agents, and print scores, costs and what was called otherwise')
    .argument('<file>', 'module whose default export is defineEvaluation({ cases, agents, scorers })')
    .option(
      '--min <score>',
      'fail if a mean is lower: 0.8, or exact=0.8 for one scorer; may be repeated',
      addLeast,
    )
    .option(
      '--agent <name>',
      'only this agent; may be repeated',
      (name: string, before?: readonly string[]) => [...(before ?? []), name],
    )
    .option('--repeats <n>', 'how often each agent runs each case', parseWholeNumber)
    .option('--concurrency <n>', 'how many runs are under way at a time', parseWholeNumber)
    .option('--name <name>', 'names the evaluation; one of that name is continued', parseFilled)
    .action(async (ledgerPath, file, { min = [], agent: chosen, name: named, repeats, concurrency }) => {
      const source = await loadEvaluation(resolve(context.workingDirectory, file))
      const { close, ...options } = source
      const agents = chosen === undefined ? options.agents : chooseAgents(options.agents, chosen)
      const unknown = min.find(
        ({ scorer }) => scorer !== undefined && !Object.hasOwn(options.scorers, scorer),
      )
      if (unknown) {
        const names = Object.keys(options.scorers).join(', ')
        throw new CommandError(
          'usage',
          `There is no scorer ${unknown.scorer} for --min. There are: ${names}.`,
        )
      }
      const name = named ?? options.name ?? crypto.randomUUID()
      let runs = 0
      try {
        done(
          await withLedger(ledgerPath, 'make', (ledger) =>
            runUntilStopped(async (stop$) => {
              const stopping = new AbortController()
              stop$.subscribe(() => stopping.abort())
              const { signal } = stopping
              const report = await withProgress(
                context,
                async () => undefined,
                ({ add, context: aside }) =>
                  keepAlive(() =>
                    evaluate({
                      ...{
                        ...options,
                        ...omitUndefined({ repeats, concurrency }),
                        agents,
                        name,
                        ledger,
                        signal,
                      },
                      onRun: async (run) => {
                        add(1)
                        runs++
                        if (context.json) await printJson(aside, run)
                      },
                    }),
                  ),
                (runs) => formatCount(runs, 'run'),
              )
              await (context.json ? printJson(context, { report }) : context.print(formatReport(report)))
              return judge(context, report, { min, ledgerPath, file, isStopped: signal.aborted })
            }),
          ),
        )
      } catch (error) {
        if (runs > 0)
          context.say(
            `All runs up to the error are on record; this makes those that are missing:\n  ${formatCommand(context.programName, 'evaluate', ledgerPath, file, '--name', name)}`,
          )
        throw error
      } finally {
        await close?.()
      }
    })
}

async function loadEvaluation(path: string): Promise<Evaluation> {
  const source = (await importConfig(path, 'Correct it')) as EvaluationSource | undefined
  const evaluation = typeof source === 'function' ? await source() : source
  if (typeof evaluation === 'object' && 'scorers' in evaluation) return evaluation
  throw new ConfigurationError(
    `${path} describes no evaluation. Let its default export be defineEvaluation({ cases, agents, scorers }) of @tallystick/evals.`,
  )
}

function chooseAgents<Agents extends object>(agents: Agents, names: readonly string[]): Agents {
  const unknown = names.find((name) => !Object.hasOwn(agents, name))
  if (unknown !== undefined)
    throw new CommandError(
      'usage',
      `There is no agent ${unknown}. There are: ${Object.keys(agents).join(', ')}.`,
    )
  return Object.fromEntries(Object.entries(agents).filter(([name]) => names.includes(name))) as Agents
}

/** Says what the report comes to, and returns the exit code. */
function judge(
  { say, programName, json }: CommandContext,
  { name, scores, unscored, cases, isComplete, lowest, failures }: EvaluationReport,
  asked: {
    readonly min: readonly LeastScore[]
    readonly ledgerPath: string
    readonly file: string
    readonly isStopped: boolean
  },
): ExitCode {
  const { min, ledgerPath, file, isStopped } = asked
  if (isStopped && !isComplete) {
    const next = formatCommand(programName, 'evaluate', ledgerPath, file, '--name', name)
    say(
      `Stopped after ${formatCount(cases, 'case')}. All runs are on record; this makes those that are missing:\n  ${next}`,
    )
    return exitCodes.interrupted
  }
  const [low] = [...failures.shown, ...lowest.shown].flatMap(({ runId }) => runId ?? [])
  if (!json && low !== undefined) say(`See a run: ${formatCommand(programName, 'show', ledgerPath, low)}`)
  const faults = min.flatMap(({ scorer: only, least }) =>
    Object.entries(scores).flatMap(([scorer, { agents }]) =>
      Object.entries(agents).flatMap(([agent, { mean }]) =>
        (only === undefined || only === scorer) && mean < least
          ? [`${scorer} of ${agent} is ${mean.toFixed(3)}, and has to be ${least} or more.`]
          : [],
      ),
    ),
  )
  if (cases === 0) faults.push('There was no case.')
  if (min.length > 0 && unscored.count > 0)
    faults.push(`${formatCount(unscored.count, 'score')} could not be given.`)
  for (const fault of faults) say(fault)
  return faults.length > 0 ? exitCodes.failed : exitCodes.ok
}
