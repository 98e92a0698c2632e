import { resolve } from 'node:path'
import { createRuntime } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { attendRun } from '../attend-run.ts'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { loadConfig } from '../load-config.ts'
import { withLedger } from '../open-ledger.ts'

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
  const { ledger: ledgerPath, run: given, config: file } = options
  const { programName, workingDirectory } = context
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, given, { programName, ledgerPath })
    const state = await foldTo(ledger, runId)
    const config = await loadConfig({
      workingDirectory,
      ...(file !== undefined && { file }),
      context: {
        ledgerPath: resolve(workingDirectory, ledgerPath),
        ...{ runId, agent: state.agent, model: state.definition.model },
      },
    })
    try {
      const run = createRuntime({ ledger, agents: config.agents }).resume(runId)
      const { reason } = await attendRun(context, run, { ...options, ledgerPath, shownSeq: state.seq })
      return reason === 'model_failed' ? exitCodes.failed : exitCodes.ok
    } finally {
      await config.close?.()
    }
  })
}
