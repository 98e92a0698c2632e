import type { Ledger } from '@tallystick/core'
import { TallystickError } from '@tallystick/core'
import { isRunDriven } from '@tallystick/core/kit'
import type { ListedRun, RunSummary, UnreadableRun } from '@tallystick/ledger'
import type { CommandContext } from '../command/command-context.ts'
import { exitCodeOf, exitCodes, type ExitCode } from '../command/exit-code.ts'
import { summaryWaits } from './summary-waits.ts'
import { summaryStatusView, type RunStatusView, type WaitedFor } from './run-status.ts'

/** A run of a list, with its status and what it waits for. */
export interface RunRow {
  readonly summary: RunSummary
  readonly statusView: RunStatusView
  readonly waits: WaitedFor
}

const nothing: WaitedFor = { approvals: [], deferred: [], children: [] }

/** Returns the row of a run: its status, the waits of its child runs, and the recorded detail of its end. */
export async function runRow(ledger: Ledger, summary: RunSummary): Promise<RunRow> {
  const waits = summary.status === 'suspended' ? await summaryWaits(ledger, summary) : nothing
  const isDriven = summary.status === 'unfinished' && (await isRunDriven(ledger, summary.runId))
  const detail = summary.hasDetail ? await endDetail(ledger, summary) : undefined
  return { summary, waits, statusView: summaryStatusView(summary, { waits, isDriven, detail }) }
}

/** What the last event of a run says about its end; it is not kept anywhere else. */
async function endDetail(ledger: Ledger, { runId, seq }: RunSummary): Promise<string | undefined> {
  try {
    for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
      if (event.type === 'run_finished') return event.detail
    }
  } catch (error) {
    // Damage that came after the summary: verify finds it.
    if (!(error instanceof TallystickError)) throw error
  }
  return undefined
}

/** Tells of runs that cannot be read: each is named on stderr, and the exit code is that of the first. */
export class UnreadableRuns {
  readonly #context: CommandContext
  #exitCode: ExitCode | undefined

  constructor(context: CommandContext) {
    this.#context = context
  }

  report({ code, message }: UnreadableRun): void {
    const exitCode = exitCodeOf(new TallystickError(code, message))
    this.#exitCode ??= exitCode
    const { json, say } = this.#context
    say(json ? JSON.stringify({ error: { code, message, exitCode } }) : `error: ${message}`)
  }

  get exitCode(): ExitCode {
    return this.#exitCode ?? exitCodes.ok
  }
}

/** Whether a run can be read. */
export function isReadable(run: ListedRun): run is RunSummary {
  return run.status !== 'unreadable'
}
