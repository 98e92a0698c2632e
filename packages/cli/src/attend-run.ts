import type { Run, RunResult, RuntimeEvent } from '@tallystick/core'
import { tallyOf } from '@tallystick/core'
import { askForApproval } from './approval-prompt.ts'
import type { CommandContext } from './command-context.ts'
import type { DriveRunOptions } from './drive-run.ts'
import { driveRun } from './drive-run.ts'
import { accountName } from './inbox.ts'
import { afterwards, continuation, resumeLine } from './view/next-commands.ts'
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
  /** Events up to this `seq` are not shown. Default 0: all are. */
  readonly shownSeq?: number
}

/** What a shell reports of a program that Ctrl-C ended. */
const interruptedExitCode = 130

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
  const { ledgerPath, by = accountName(), shownSeq = 0 } = options
  const show = runPrinter(context.view)
  const halves: RuntimeEvent[] = []
  const watch = (event: RuntimeEvent): void => {
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
    if (event.seq > shownSeq) show(event)
  }
  const place = { programName: context.programName, ledgerPath }
  const leave = (): void => {
    context.say(`\nStopped. What was recorded is kept, and this continues it:\n${resumeLine(run.id, place)}`)
    process.exit(interruptedExitCode)
  }
  process.once('SIGINT', leave)
  const result = await driveRun(run, { by, choose: chooserFor(context, options), watch }).finally(() =>
    process.off('SIGINT', leave),
  )
  const tally = `Tally: ${tallyText(tallyOf(halves))}. Tokens: ${usageText(result.usage)}.\n`
  const next = result.status === 'done' ? afterwards(result.runId, place) : continuation(result, place)
  context.view.write(`\n${tally}${next}`)
  if (context.json) await context.print(`${JSON.stringify(resultData(result, ledgerPath))}\n`)
  return result
}

function chooserFor(context: CommandContext, { yes, deny }: AttendRunOptions): DriveRunOptions['choose'] {
  if (yes === true) return () => ({ kind: 'approve' })
  if (deny !== undefined) return () => ({ kind: 'deny', reason: deny })
  return context.interactive ? askForApproval : () => ({ kind: 'later' })
}

function resultData(result: RunResult, ledger: string): object {
  const { runId, status, reason = null, text, turns, toolCalls, usage, pendingApprovals } = result
  const waiting = status === 'suspended' ? { pendingApprovals } : {}
  return { runId, status, reason, text, turns, toolCalls, usage, ledger, ...waiting }
}
