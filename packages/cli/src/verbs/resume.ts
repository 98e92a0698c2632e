import type { Runtime, RunResult, RunState } from '@tallystick/core'
import { createRuntime, isSuspended } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { resultData, sayNext, watchRun, type AttendRunOptions } from '../attend-run.ts'
import type { CommandContext } from '../command-context.ts'
import { commandLine } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { employersOf } from '../parent-of.ts'
import { untilTold } from '../until-told.ts'
import { withAgents, type RunWithAgents } from '../with-agents.ts'

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

/**
 * `resume`: drives a run on until it is done, or suspended with nobody to ask. Where it has worked for another run, that
 * one goes on behind it; what `yes` and `deny` say holds for the run that was named.
 */
export function resume(context: CommandContext, options: ResumeOptions): Promise<ExitCode> {
  return withAgents(context, { ...options, verb: 'resume' }, async (found) => {
    const { ledger, state, agents } = found
    const faults = Promise.withResolvers<never>()
    // Whoever waits for what the runtime does behind a result hears of it; for the others it is said.
    faults.promise.catch(() => {})
    const report = (error: unknown): void => {
      context.say(`error: ${error instanceof Error ? error.message : String(error)}`)
      faults.reject(error)
    }
    const runtime = createRuntime({ ledger, agents, host: { report } })
    const driven = new DrivenRuns(context, runtime, options)
    const employers: RunState[] = []
    for (const runId of await employersOf(ledger, state.runId)) employers.push(await foldTo(ledger, runId))
    const result = await driven.drive(state, options)
    const above = await Promise.race([driven.driveEmployers({ ...found, result, employers }), faults.promise])
    sayNext(context, above.at(-1) ?? result, options.ledger)
    if (context.json) {
      const data = [result, ...above].map((each) => resultData(each, options.ledger))
      const nested = data.reduceRight((employer, each) => ({ ...each, worksFor: employer }))
      await context.print(`${JSON.stringify(nested)}\n`)
    }
    return result.reason === 'model_failed' ? exitCodes.failed : exitCodes.ok
  })
}

/** A run that came to rest, and the runs that it works for, as they were before, the nearest first. */
interface Rested extends RunWithAgents {
  readonly result: RunResult
  readonly employers: readonly RunState[]
}

/** The runs that one `resume` drives, one after the other. */
class DrivenRuns {
  readonly #context: CommandContext
  readonly #runtime: Runtime
  readonly #options: ResumeOptions
  #draining = false

  constructor(context: CommandContext, runtime: Runtime, options: ResumeOptions) {
    this.#context = context
    this.#runtime = runtime
    this.#options = options
  }

  /** Drives a run to its rest, and shows what is new. */
  drive({ runId, seq }: RunState, decisions: Pick<AttendRunOptions, 'yes' | 'deny'>): Promise<RunResult> {
    const { ledger: ledgerPath, by } = this.#options
    const { yes, deny } = decisions
    const drain = (): Promise<unknown> => {
      this.#draining = true
      return this.#runtime.drain()
    }
    return watchRun(this.#context, this.#runtime.resume(runId), {
      ...{ ledgerPath, by, yes, deny, drain, shownSeq: seq },
    })
  }

  /** Drives the runs on that the one that came to rest has worked for, as far up as each of them ends. */
  async driveEmployers({ ledger, agents, result, employers }: Rested): Promise<readonly RunResult[]> {
    const results: RunResult[] = []
    let last = result
    for (const employer of employers) {
      if (last.status !== 'done') break
      await untilTold(ledger, employer.runId, last.runId)
      if (this.#draining || employer.phase === 'done') break
      const isKnown = agents.some(({ name }) => name === employer.agent)
      if (!isKnown || !isSuspended(employer)) {
        this.#sayNext(employer)
        break
      }
      this.#context.view.write(`\nRun ${last.runId} worked for run ${employer.runId}, which goes on:\n`)
      last = await this.drive(employer, {})
      results.push(last)
    }
    return results
  }

  #sayNext({ runId }: RunState): void {
    const { programName, say } = this.#context
    say(
      `It worked for run ${runId}, which goes on with its result. Where no process drives that one, this does:`,
    )
    say(`  ${commandLine(programName, 'resume', this.#options.ledger, runId)}`)
  }
}
