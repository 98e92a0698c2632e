import { createRuntime } from '@tallystick/core'
import { attendRun } from '../attend-run.ts'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { withAgents } from '../with-agents.ts'

/** What `resume` was given. */
export interface ResumeOptions {
  readonly ledger: string
  readonly run: string
  readonly yes?: boolean
  /** Why every call that waits is denied. */
  readonly deny?: string
  readonly by?: string
  readonly config?: string
}

/** `resume`: drives a run on until it is done, or suspended with nobody to ask. */
export function resume(context: CommandContext, options: ResumeOptions): Promise<ExitCode> {
  return withAgents(context, { ...options, verb: 'resume' }, async ({ ledger, state, agents }) => {
    const runtime = createRuntime({ ledger, agents })
    const { reason } = await attendRun(context, runtime.resume(state.runId), {
      ...options,
      ledgerPath: options.ledger,
      drain: () => runtime.drain(),
      shownSeq: state.seq,
    })
    return reason === 'model_failed' ? exitCodes.failed : exitCodes.ok
  })
}
