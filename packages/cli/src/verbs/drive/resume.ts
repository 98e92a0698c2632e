import type { Runtime, RunState } from '@tallystick/core'
import { createRuntime, isSuspended, omitUndefined } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { sayRested, viewOf, watchRun, type AttendRunOptions } from '../../attend/interactive-run.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { commandLine } from '../../command/command-context.ts'
import { endingCode } from '../../command/ending-code.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { employersOf } from '../../attend/parent-of.ts'
import { untilTold } from '../../runs/await-parent-notified.ts'
import { variationWords, variedAgent, type Variation } from '../../config/override-agent.ts'
import type { RestedRun } from '../../view/text/next-commands.ts'
import { withAgents, type RunWithAgents } from '../../config/open-agents.ts'

/** What `resume` was given. */
export interface ResumeOptions extends Variation {
  readonly ledger: string
  readonly run: string
  readonly yes?: boolean
  /** Why every call that waits is denied. */
  readonly deny?: string
  readonly by?: string
  readonly answer?: boolean
  readonly config?: string
}

/**
 * `resume`: drives a run on until it is done, or suspended with nobody to ask. Where it has worked for another run, that
 * one goes on behind it; what `yes` and `deny` say holds for the run that was named.
 */
export function resume(context: CommandContext, options: ResumeOptions): Promise<ExitCode> {
  return withAgents(context, { ...options, verb: 'resume' }, async (found) => {
    const { ledger, state, prices, approval } = found
    const agents = found.agents.map((agent) =>
      agent.name === state.agent ? variedAgent(agent, options, found) : agent,
    )
    const faults = Promise.withResolvers<never>()
    // Whoever waits for what the runtime does behind a result hears of it; for the others it is said.
    faults.promise.catch(() => {})
    const report = (error: unknown): void => {
      context.say(`error: ${error instanceof Error ? error.message : String(error)}`)
      faults.reject(error)
    }
    const runtime = createRuntime({
      ledger,
      agents,
      host: { report },
      ...omitUndefined({ prices, approval }),
    })
    const driven = new DrivenRuns(context, runtime, {
      ...options,
      given: omitUndefined({ context: found.context }),
    })
    const employers: RunState[] = []
    for (const runId of await employersOf(ledger, state.runId)) employers.push(await foldTo(ledger, runId))
    const rested = await driven.drive(state, options)
    const above = await Promise.race([driven.driveEmployers({ ...found, rested, employers }), faults.promise])
    await sayRested(context, [rested, ...above], {
      ...{ ledgerPath: options.ledger, answer: options.answer, resumeWords: variationWords(options) },
    })
    return endingCode(rested.result)
  })
}

/** A run that came to rest, and the runs that it works for, as they were before, the nearest first. */
interface Rested extends RunWithAgents {
  readonly rested: RestedRun
  readonly employers: readonly RunState[]
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
  drive({ runId, seq }: RunState, decisions: Pick<AttendRunOptions, 'yes' | 'deny'>): Promise<RestedRun> {
    const { ledger: ledgerPath, by, answer, given } = this.#options
    const { yes, deny } = decisions
    const drain = (): Promise<unknown> => {
      this.#draining = true
      return this.#runtime.drain()
    }
    return watchRun(this.#context, this.#runtime.resume(runId, given), {
      ...{ ledgerPath, by, yes, deny, drain, answer, shownSeq: seq },
    })
  }

  /** Drives the runs on that the one that came to rest has worked for, as far up as each of them ends. */
  async driveEmployers({ ledger, agents, rested, employers }: Rested): Promise<readonly RestedRun[]> {
    const above: RestedRun[] = []
    let last = rested
    for (const employer of employers) {
      const { status, runId } = last.result
      if (status !== 'done') break
      await untilTold(ledger, employer.runId, runId)
      if (this.#draining || employer.phase === 'done') break
      const isKnown = agents.some(({ name }) => name === employer.agent)
      if (!isKnown || !isSuspended(employer)) {
        this.#sayNext(employer)
        break
      }
      const view = viewOf(this.#context, this.#options.answer)
      view.write(`\nRun ${runId} worked for run ${employer.runId}, which goes on:\n`)
      last = await this.drive(employer, {})
      above.push(last)
    }
    return above
  }

  #sayNext({ runId }: RunState): void {
    const { programName, say } = this.#context
    say(
      `It worked for run ${runId}, which goes on with its result. Where no process drives that one, this does:`,
    )
    say(`  ${commandLine(programName, 'resume', this.#options.ledger, runId)}`)
  }
}
