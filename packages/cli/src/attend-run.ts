import type { Run, RunResult, RuntimeEvent } from '@tallystick/core'
import { tallyOf } from '@tallystick/core'
import { askForApproval } from './approval-prompt.ts'
import type { CommandContext } from './command-context.ts'
import type { DriveRunOptions } from './drive-run.ts'
import { driveRun } from './drive-run.ts'
import { accountName } from './inbox.ts'
import { afterwards, continuation } from './view/next-commands.ts'
import { tallyText, usageText } from './view/run-ending.ts'
import { runPrinter } from './view/run-printer.ts'

/** How a run is attended. */
export interface AttendRunOptions {
  /** Path of the ledger, as the user wrote it. */
  readonly ledgerPath: string
  /** Approves every call that waits for it. */
  readonly yes?: boolean | undefined
  /** Denies every call that waits for an approval, with this reason. */
  readonly deny?: string | undefined
  /** Who decides, for the record. Default: the name of the account. */
  readonly by?: string | undefined
  /** Brings the run to rest: nothing more is started, and what is in flight may end. Called on Ctrl-C. */
  readonly drain: () => Promise<unknown>
  /** Events up to this `seq` are not shown. Default 0: all are. */
  readonly shownSeq?: number
}

/** What a shell reports of a program that Ctrl-C ended. */
const interruptedExitCode = 130
const signals = ['SIGINT', 'SIGTERM'] as const

/**
 * Shows a run while it goes on, and has its approvals decided: by the options, by the person at the terminal, or, where
 * there is neither, by nobody, which leaves the run suspended. Ends with the tally and the commands that come next, or
 * with one JSON object on stdout.
 */
export async function attendRun(
  context: CommandContext,
  run: Run,
  options: AttendRunOptions,
): Promise<RunResult> {
  const result = await watchRun(context, run, options)
  sayNext(context, result, options.ledgerPath)
  if (context.json) await context.print(`${JSON.stringify(resultData(result, options.ledgerPath))}\n`)
  return result
}

/** Shows the commands that come next. */
export function sayNext({ programName, view }: CommandContext, result: RunResult, ledgerPath: string): void {
  const place = { programName, ledgerPath }
  view.write(result.status === 'done' ? afterwards(result.runId, place) : continuation(result, place))
}

/** Does what `attendRun` does up to the tally. */
export async function watchRun(
  context: CommandContext,
  run: Run,
  options: AttendRunOptions,
): Promise<RunResult> {
  const { by = accountName(), shownSeq = 0 } = options
  const show = runPrinter(context.view)
  const halves: RuntimeEvent[] = []
  const watch = (event: RuntimeEvent): void => {
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
    if (event.seq > shownSeq) show(event)
  }
  const stop = stopOnSignal(context, options)
  const choose = chooserFor(context, options)
  const decided: DriveRunOptions['choose'] = (approval) => (stop.asked ? { kind: 'later' } : choose(approval))
  const result = await driveRun(run, { by, choose: decided, watch }).finally(() => stop.off())
  const known =
    result.status === 'done' && result.seq <= shownSeq
      ? `Run ${result.runId} was done already: ${result.reason}. Nothing was left to do.\n`
      : ''
  const tally = `${known}Tally: ${tallyText(tallyOf(halves))}. Tokens: ${usageText(result.usage)}.\n`
  context.view.write(`\n${tally}`)
  return result
}

/** The first stop signal brings the run to rest, the second ends the process. */
function stopOnSignal(
  { say }: CommandContext,
  { drain }: AttendRunOptions,
): { readonly asked: boolean; readonly off: () => void } {
  const stop = {
    asked: false,
    off: () => signals.forEach((signal) => process.off(signal, hear)),
  }
  const hear = (): void => {
    if (stop.asked) process.exit(interruptedExitCode)
    stop.asked = true
    say('\nStopping: nothing more is started, and what is in flight may end. Once more ends this at once.')
    // What went wrong is in the run's own result too.
    drain().catch(() => undefined)
  }
  signals.forEach((signal) => process.on(signal, hear))
  return stop
}

function chooserFor(context: CommandContext, { yes, deny }: AttendRunOptions): DriveRunOptions['choose'] {
  if (yes === true) return () => ({ kind: 'approve' })
  if (deny !== undefined) return () => ({ kind: 'deny', reason: deny })
  return context.interactive ? askForApproval : () => ({ kind: 'later' })
}

/** A result for programs: what there is none of is null. */
export function resultData(result: RunResult, ledger: string): object {
  const { runId, agent, status, reason = null, detail = null, text, output = null } = result
  const { turns, toolCalls, children, usage, cost = null, pendingApprovals, deferredCalls, seq } = result
  return {
    ...{ runId, agent, status, reason, detail, text, output, turns, toolCalls, children, usage, cost, seq },
    ...{ ledger, pendingApprovals, deferredCalls },
  }
}
