import { createRuntime, present } from '@tallystick/core'
import { attendRun } from '../attend-run.ts'
import type { CommandContext } from '../command-context.ts'
import { commandLine } from '../command-context.ts'
import { endingCode } from '../ending-code.ts'
import type { ExitCode } from '../exit-code.ts'
import { accountName } from '../inbox.ts'
import { withAgents } from '../with-agents.ts'

/** What `fork` was given. */
export interface ForkVerbOptions {
  readonly ledger: string
  readonly run: string
  /** The last event that the fork shares. */
  readonly at: number
  /** What the user says in the place of the last input before that event. */
  readonly input?: string
  readonly reason?: string
  readonly yes?: boolean
  readonly deny?: string
  readonly by?: string
  readonly answer?: boolean
  readonly config?: string
}

/**
 * `fork`: starts a run that shares the first events of another, and drives it on with the agents of today. Results on
 * record are served until it asks for another call. The run that is forked stays as it is.
 */
export function fork(context: CommandContext, options: ForkVerbOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, at: atSeq, input, reason, by = accountName(), yes, deny, answer } = options
  return withAgents(context, { ...options, verb: 'fork' }, async ({ ledger, state, agents, prices }) => {
    const runtime = createRuntime({ ledger, agents, ...present({ prices }) })
    const edit = input === undefined ? {} : { edit: { input, by, ...(reason !== undefined && { reason }) } }
    const run = runtime.fork(state.runId, { atSeq, ...edit })
    const drain = (): Promise<unknown> => runtime.drain()
    const result = await attendRun(context, run, {
      ledgerPath,
      by,
      yes,
      deny,
      answer,
      drain,
      shownSeq: atSeq,
    })
    const where = `Run ${run.id} shares ${atSeq} events with run ${state.runId}.`
    const compare = commandLine(context.programName, 'diff', ledgerPath, state.runId, run.id)
    context.say(`${where} Compare them with: ${compare}`)
    return endingCode(result)
  })
}
