import type { Run, RunResult, RuntimeEvent } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { tallyOf } from '@tallystick/core/machine'
import { askForApproval } from './approval-prompt.ts'
import type { CommandContext, View } from '../command/command-context.ts'
import type { DriveRunOptions } from './drive-run.ts'
import { driveRun } from './drive-run.ts'
import { accountName } from './inbox.ts'
import { shownLedger } from '../command/ledger-place.ts'
import { keepAlive } from '../terminal/keep-alive.ts'
import { stopOnSignal } from '../command/process-signals.ts'
import { afterwards, continuation, type MetLimit, type StoppedRun } from '../view/text/next-commands.ts'
import { tallyText, usageText } from '../view/text/run-ending.ts'
import { runPrinter } from '../view/run/run-printer.ts'

/** Options of an interactive run. */
export interface InteractiveRunOptions {
  /** Path of the ledger, or its connection string, as the user wrote it. */
  readonly ledgerPath: string
  /** Approves every call that waits for it. */
  readonly yes?: boolean | undefined
  /** Denies every call that waits for an approval, with this reason. */
  readonly deny?: string | undefined
  /** Who decides, for the record. Default: the name of the account. */
  readonly by?: string | undefined
  /** Stops the run: nothing more is started, and effects in flight may end. Called on Ctrl-C. */
  readonly drain: () => Promise<unknown>
  /** Cancels the run. If given, Ctrl-C calls it instead of `drain`; SIGTERM always calls `drain`. */
  readonly cancel?: () => Promise<unknown>
  /** Prints the events, one JSON object a line, as far as JSON is printed: the result is then the last line. */
  readonly eventLines?: boolean
  /** Prints the answer, where there is one, and shows the run on stderr. */
  readonly answer?: boolean | undefined
  /** Options that the command which continues the run needs as well. */
  readonly resumeArguments?: readonly string[]
  /** Events up to this `seq` are not shown. Default 0: all are. */
  readonly shownSeq?: number
}

const anyContext = option.valueThat('a context that processContext made', (value) => {
  const { print, say, view, aside } = Object(value) as Partial<CommandContext>
  const views = [view, aside].every((each) => typeof each?.write === 'function')
  return typeof print === 'function' && typeof say === 'function' && views
})
const anyRun = option.valueThat('a run, such as runtime.run(agent, input) returns', (value) => {
  const { after, result } = Object(value) as Partial<Run>
  return typeof after === 'function' && option.isThenable(result)
})
const anyOptions = option.valueThat(
  'the options, as in { ledgerPath, drain: () => runtime.drain() }',
  (value) => {
    const { ledgerPath, drain } = Object(value) as Partial<InteractiveRunOptions>
    return typeof ledgerPath === 'string' && typeof drain === 'function'
  },
)

/**
 * Shows a run as it proceeds, and has its approvals decided by the options or by the person at the terminal. Without
 * either, the run stays suspended. Ends with the tally and the next commands, or with one JSON object on stdout.
 * Rejects with a `ConfigurationError` for what is no context, no run or no options.
 */
export async function interactiveRun(
  context: CommandContext,
  run: Run,
  options: InteractiveRunOptions,
): Promise<RunResult> {
  requireOptions('interactiveRun', anyContext, context, 'the context')
  requireOptions('interactiveRun', anyRun, run, 'the run')
  requireOptions('interactiveRun', anyOptions, options)
  const stopped = await watchRun(context, run, options)
  await reportStopped(context, [stopped], options)
  return stopped.result
}

/** Prints, after the last of the runs, the next commands and the results in the requested form. */
export async function reportStopped(
  context: CommandContext,
  runs: readonly [StoppedRun, ...StoppedRun[]],
  {
    ledgerPath,
    answer,
    resumeArguments = [],
  }: Pick<InteractiveRunOptions, 'ledgerPath' | 'answer' | 'resumeArguments'>,
): Promise<void> {
  const { json, print, printData, programName } = context
  const last = runs.at(-1) ?? runs[0]
  const { result } = last
  const place = { programName, ledgerPath, resumeArguments }
  viewOf(context, answer).write(
    result.status === 'done' ? afterwards(result.runId, place) : continuation(last, place),
  )
  if (json) {
    const data = runs.map((each) => resultData(each.result, ledgerPath))
    const nested = data.reduceRight((parent, each) => ({ ...each, parent: parent }))
    await print(`${JSON.stringify(nested)}\n`)
  } else if (answer === true && result.status === 'done') await printData(`${result.text}\n`)
}

/** Where a run is shown. */
export function viewOf({ json, view, aside }: CommandContext, answer: boolean | undefined): View {
  return answer === true && !json ? aside : view
}

/** Does what `interactiveRun` does up to the tally. */
export async function watchRun(
  context: CommandContext,
  run: Run,
  options: InteractiveRunOptions,
): Promise<StoppedRun> {
  const { by = accountName(), shownSeq = 0, answer, eventLines = false } = options
  const view = viewOf(context, answer)
  const show = runPrinter(view)
  const halves: RuntimeEvent[] = []
  let metLimit: MetLimit | undefined
  const watch = async (event: RuntimeEvent): Promise<void> => {
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
    if (event.type === 'limit_reached' && event.policy === 'ask') metLimit = event
    if (event.type === 'limit_raised') metLimit = undefined
    if (event.seq <= shownSeq) return
    show(event)
    if (eventLines && context.json) await context.print(`${JSON.stringify(event)}\n`)
  }
  const stop = stopOnSignal(context, options)
  const choose = chooserFor(context, options)
  const decided: DriveRunOptions['choose'] = (approval) => (stop.asked ? { kind: 'later' } : choose(approval))
  const driven = keepAlive(() => driveRun(run, { by, choose: decided, watch }))
  const result = await driven.finally(() => stop.off())
  const known =
    result.status === 'done' && result.seq <= shownSeq
      ? `Run ${result.runId} was done already: ${result.reason}. Nothing was left to do.\n`
      : ''
  const tally = `${known}Tally: ${tallyText(tallyOf(halves))}. Tokens: ${usageText(result.usage)}.\n`
  view.write(`\n${tally}`)
  return { result, ...(metLimit !== undefined && { metLimit }) }
}

function chooserFor(
  context: CommandContext,
  { yes, deny }: InteractiveRunOptions,
): DriveRunOptions['choose'] {
  if (yes === true) return () => ({ kind: 'approve', via: '--yes' })
  if (deny !== undefined) return () => ({ kind: 'deny', via: '--deny', reason: deny })
  const { person } = context
  return person ? (approval) => askForApproval(person, approval) : () => ({ kind: 'later' })
}

/** A result for programs: missing values are null. */
function resultData(result: RunResult, ledger: string): object {
  const { runId, agent, status, reason = null, detail = null, text, output = null } = result
  const { turns, toolCalls, children, usage, costUsd = null, pendingApprovals, deferredCalls, seq } = result
  return {
    runId,
    agent,
    status,
    reason,
    detail,
    text,
    output,
    turns,
    toolCalls,
    children,
    usage,
    costUsd,
    seq,
    ledger: shownLedger(ledger),
    pendingApprovals,
    deferredCalls,
  }
}
