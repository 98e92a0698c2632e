import { type Ledger, LedgerConflictError, type RunId, type RunState } from '@tallystick/core'
import { caughtUp, followChanges, omitUndefined } from '@tallystick/core/internal'
import { evolve, isSuspended } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'
import type { Command } from '@commander-js/extra-typings'
import { declareRunArguments, declareDriveOptions } from '../command/arguments.ts'
import { type CommandContext, formatCommand } from '../command/context.ts'
import { toExitCode } from '../command/exit-code.ts'
import type { StoppedRun } from '../command/next-commands.ts'
import {
  createConfiguredRuntime,
  openAgents,
  overrideAgent,
  overrideArguments,
  type RunWithAgents,
} from '../drive/agents.ts'
import { type InteractiveRunOptions, reportStopped, chooseView, watchRun } from '../drive/interactive-run.ts'
import { readParents } from '../runs/find-run.ts'
import { listOwnWaits } from '../runs/run-status.ts'
import type { Done } from '../verbs.ts'

/** Declares `resume`. The parents of a child run continue after it; `--yes` and `--deny` hold for the run that was named. */
export function declareResume(verb: Command, context: CommandContext, done: Done): void {
  declareDriveOptions(declareRunArguments(verb))
    .option(
      '--take-over',
      'do not wait for the process that drives the run: if it is alive, its work in flight may happen twice',
    )
    .action(async (ledgerPath, named, options) => {
      const { by, answer, takeOver, config, yes, deny } = options
      const asked = { verb: 'resume', ledger: ledgerPath, run: named, config } as const
      await openAgents(context, asked, async (found) => {
        const { ledger, state, context: given } = found
        const agents = found.agents.map((agent) =>
          agent.name === state.agent ? overrideAgent(agent, options, found) : agent,
        )
        const faults = Promise.withResolvers<never>()
        // A failure after the result rejects for whoever waits for it; otherwise it is only reported.
        faults.promise.catch(() => {})
        const report = (error: unknown, what: string): void => {
          // To follow a run, or to take it over from a process that may live, is not a failure.
          if (error instanceof LedgerConflictError && error.kind === 'lease')
            return context.say(`${what}. ${error.message}`)
          context.say(`error: ${error instanceof Error ? error.message : String(error)}`)
          faults.reject(error)
        }
        const runtime = createConfiguredRuntime(ledger, { ...found, agents }, { report })
        let isStopping = false
        const drain = (): Promise<unknown> => {
          isStopping = true
          return runtime.drain()
        }
        const drive: Drive = ({ runId, seq }, decisions) => {
          const run = runtime.resume(runId, omitUndefined({ context: given, takeOver }))
          return watchRun(context, run, { ledgerPath, by, answer, drain, shownSeq: seq, ...decisions })
        }
        const parents: RunState[] = []
        for (const runId of await readParents(ledger, state.runId)) parents.push(await foldTo(ledger, runId))
        const stopped = await drive(state, { yes, deny })
        const family = { ledger, ledgerPath, agents, parents, answer, drive, isStopping: () => isStopping }
        const above = await Promise.race([driveParents(context, stopped, family), faults.promise])
        const resumeArguments = overrideArguments(options)
        await reportStopped(context, [stopped, ...above], { ledgerPath, answer, resumeArguments })
        done(toExitCode(stopped.result))
      })
    })
}

/** Drives a run until it rests, and shows what is new. */
type Drive = (state: RunState, decisions: Pick<InteractiveRunOptions, 'yes' | 'deny'>) => Promise<StoppedRun>

interface Family extends Pick<RunWithAgents, 'ledger' | 'agents'> {
  readonly ledgerPath: string
  /** The parents of the run as they were before it was driven, the nearest first. */
  readonly parents: readonly RunState[]
  readonly answer: boolean | undefined
  readonly drive: Drive
  readonly isStopping: () => boolean
}

/** Continues the parents of a run that has stopped, up to the first that does not end. */
async function driveParents(
  context: CommandContext,
  stopped: StoppedRun,
  { ledger, ledgerPath, agents, parents, answer, drive, isStopping }: Family,
): Promise<readonly StoppedRun[]> {
  const above: StoppedRun[] = []
  let last = stopped
  for (const parent of parents) {
    const { status, runId } = last.result
    if (status !== 'done') break
    await awaitParentNotified(ledger, parent.runId, runId)
    if (isStopping() || parent.phase === 'done') break
    if (!isSuspended(parent) || agents.every(({ name }) => name !== parent.agent)) {
      const { programName, say } = context
      say(
        `Its parent is run ${parent.runId}, which continues with its result. If no process drives the parent, this does:\n` +
          `  ${formatCommand(programName, 'resume', ledgerPath, parent.runId)}`,
      )
      break
    }
    chooseView(context, answer).write(`\nRun ${runId} is a child of run ${parent.runId}, which continues:\n`)
    last = await drive(parent, {})
    above.push(last)
  }
  return above
}

/**
 * Waits until the parent of a child run has the command that settles its call. The runtime puts it after the child run
 * has its result, so closing the ledger earlier would lose it.
 */
export async function awaitParentNotified(ledger: Ledger, parent: RunId, child: RunId): Promise<void> {
  let state = await foldTo(ledger, parent)
  for await (const event of followChanges(ledger, parent, { after: state.seq })) {
    if (event !== caughtUp) {
      state = evolve(state, event)
      continue
    }
    const inbox = await ledger.inbox(parent)
    if (inbox.some(({ command }) => command.type === 'settle' && command.child?.runId === child)) return
    if (listOwnWaits(state).children.every(({ runId }) => runId !== child)) return
  }
}
