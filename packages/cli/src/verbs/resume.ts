import { createRuntime, LedgerConflictError, type RunState, type Runtime } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { isSuspended } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'
import type { Command } from 'commander'
import { onLedger, withDriveOptions } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { endingCode, type ExitCode } from '../command/exit-code.ts'
import type { StoppedRun } from '../command/next-commands.ts'
import {
  type AgentOverrides,
  openAgents,
  overrideAgent,
  overrideArguments,
  type RunWithAgents,
} from '../drive/agents.ts'
import { type InteractiveRunOptions, reportStopped, viewOf, watchRun } from '../drive/interactive-run.ts'
import { awaitParentNotified } from '../runs/await-parent-notified.ts'
import { parentsOf } from '../runs/find-run.ts'
import type { Done } from '../verbs.ts'

/** What `resume` was given. */
export interface ResumeOptions extends AgentOverrides {
  readonly ledger: string
  readonly run: string
  readonly yes?: boolean
  /** Why every call that waits is denied. */
  readonly deny?: string
  readonly by?: string
  readonly answer?: boolean
  readonly config?: string
  /** Does not wait for the process that drives the run. */
  readonly takeOver?: boolean
}

/** Declares what `resume` takes. */
export function declareResume(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb).argument('<run>', 'id of the run')
  withDriveOptions(verb)
    .option(
      '--take-over',
      'do not wait for the process that drives the run: if it lives, what it has under way may happen twice',
    )
    .action(async (ledger: string, run: string, options: Omit<ResumeOptions, 'ledger' | 'run'>) => {
      done(await resume(context, { ledger, run, ...options }))
    })
}

/**
 * `resume`: drives a run until it is done, or suspended without a person to ask. The parent of a child run continues
 * after it; `yes` and `deny` apply to the run that was named.
 */
export function resume(context: CommandContext, options: ResumeOptions): Promise<ExitCode> {
  return openAgents(context, { ...options, verb: 'resume' }, async (found) => {
    const { ledger, state, prices, rules } = found
    const agents = found.agents.map((agent) =>
      agent.name === state.agent ? overrideAgent(agent, options, found) : agent,
    )
    const faults = Promise.withResolvers<never>()
    // A failure after the result rejects for a caller that waits; for any other caller it is reported.
    faults.promise.catch(() => {})
    const report = (error: unknown, what: string): void => {
      // That a run is followed, or taken over from a process that may live, is no failure.
      if (error instanceof LedgerConflictError && error.kind === 'lease')
        return context.say(`${what}. ${error.message}`)
      context.say(`error: ${error instanceof Error ? error.message : String(error)}`)
      faults.reject(error)
    }
    const runtime = createRuntime({
      ledger,
      agents,
      host: { report },
      ...rules,
      ...omitUndefined({ prices }),
    })
    const driven = new DrivenRuns(context, runtime, {
      ...options,
      given: omitUndefined({ context: found.context }),
    })
    const parents: RunState[] = []
    for (const runId of await parentsOf(ledger, state.runId)) parents.push(await foldTo(ledger, runId))
    const stopped = await driven.drive(state, options)
    const above = await Promise.race([driven.driveParents({ ...found, stopped, parents }), faults.promise])
    await reportStopped(context, [stopped, ...above], {
      ledgerPath: options.ledger,
      answer: options.answer,
      resumeArguments: overrideArguments(options),
    })
    return endingCode(stopped.result)
  })
}

/** A run that has stopped, and its parents as they were before, the nearest first. */
interface StoppedDrive extends RunWithAgents {
  readonly stopped: StoppedRun
  readonly parents: readonly RunState[]
}

/** How runs are driven: as the command line says, with what the configuration gives them. */
interface DriveOptions extends ResumeOptions {
  readonly given: { readonly context?: unknown }
}

/** The runs that one `resume` drives, one after the other. */
class DrivenRuns {
  readonly #context: CommandContext
  readonly #runtime: Runtime
  readonly #options: DriveOptions
  #draining = false

  constructor(context: CommandContext, runtime: Runtime, options: DriveOptions) {
    this.#context = context
    this.#runtime = runtime
    this.#options = options
  }

  /** Drives a run to its rest, and shows what is new. */
  drive(
    { runId, seq }: RunState,
    decisions: Pick<InteractiveRunOptions, 'yes' | 'deny'>,
  ): Promise<StoppedRun> {
    const { ledger: ledgerPath, by, answer, given, takeOver } = this.#options
    const { yes, deny } = decisions
    const drain = (): Promise<unknown> => {
      this.#draining = true
      return this.#runtime.drain()
    }
    return watchRun(
      this.#context,
      this.#runtime.resume(runId, { ...given, ...omitUndefined({ takeOver }) }),
      {
        ledgerPath,
        by,
        yes,
        deny,
        drain,
        answer,
        shownSeq: seq,
      },
    )
  }

  /** Continues the parents of a run that has stopped, up to the first that does not end. */
  async driveParents({ ledger, agents, stopped, parents }: StoppedDrive): Promise<readonly StoppedRun[]> {
    const above: StoppedRun[] = []
    let last = stopped
    for (const parent of parents) {
      const { status, runId } = last.result
      if (status !== 'done') break
      await awaitParentNotified(ledger, parent.runId, runId)
      if (this.#draining || parent.phase === 'done') break
      const isKnown = agents.some(({ name }) => name === parent.agent)
      if (!isKnown || !isSuspended(parent)) {
        this.#printNextCommand(parent)
        break
      }
      const view = viewOf(this.#context, this.#options.answer)
      view.write(`\nRun ${runId} is a child of run ${parent.runId}, which continues:\n`)
      last = await this.drive(parent, {})
      above.push(last)
    }
    return above
  }

  #printNextCommand({ runId }: RunState): void {
    const { programName, say } = this.#context
    say(
      `Its parent is run ${runId}, which continues with its result. If no process drives the parent, this does:`,
    )
    say(`  ${commandLine(programName, 'resume', this.#options.ledger, runId)}`)
  }
}
