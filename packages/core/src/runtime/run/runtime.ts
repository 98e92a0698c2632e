import type { Host } from '../../ports/clock.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { AnyContext } from '../../vocabulary/agent/any-context.ts'
import type { ResultPart, UserPart } from '../../vocabulary/model/content.ts'
import type { GivenLimits } from '../../vocabulary/limits/limits.ts'
import type { ModelSettings } from '../../vocabulary/model/model-settings.ts'
import type { Agent } from '../agent/agent.ts'
import type { ApprovalPolicy } from '../agent/approval-policy.ts'
import type { ForkOptions } from '../fork/fork.ts'
import type { InterruptedOptions } from '../reading/listed-runs.ts'
import type { Prices } from '../agent/price-check.ts'
import type { ContextOption } from '../definition/run-context.ts'
import type { CommandAcknowledgement } from '../commands/command-acknowledgement.ts'
import type { RunResult } from '../reading/run-result.ts'
import type { Run } from './run.ts'
import type { PastOptions, Session } from '../session/session.ts'

/** What a runtime is put together from. */
export interface RuntimeOptions {
  readonly ledger: Ledger
  /** The agents that a resume can find by the name in the ledger. Those that `run` is given are known as well. */
  readonly agents?: readonly Agent<unknown>[] | undefined
  /** What models cost: by model id, or as a function. Without a price a run has no cost, and no `costMaxUsd`. */
  readonly prices?: Prices | undefined
  /**
   * A say about each call of every agent that this runtime drives: also of those that a conversation is handed over to
   * and of those that work as tools, whose own `approval` is another one or none. The stricter of both holds.
   */
  readonly approval?: ApprovalPolicy | undefined
  /**
   * What a resume does when the agent's code says something else than what the run recorded: `continue` with what it
   * says now, which is put on record (the default), or `refuse`.
   */
  readonly onDrift?: 'continue' | 'refuse' | undefined
  /** Time, timers, randomness, and where stray errors are reported; the host's own where not given. */
  readonly host?: { readonly [Part in keyof Host]?: Host[Part] | undefined } | undefined
}

/** What one run may have of its own. */
export interface RunOptions extends PastOptions {
  /** Limits of this run, over those of the agent. */
  readonly limits?: GivenLimits | undefined
  /** How models write in this run, each setting over that of the agent. It holds for agents that take over, too. */
  readonly modelSettings?: ModelSettings | undefined
  /**
   * Whom the run is about, such as a customer, by a name that says nothing about them: it stands in the ledger in the
   * clear. A ledger with keys seals what is said in the run for this subject, so that destroying the key erases it.
   * Runs of the session, branches, forks and child runs have the same subject, where not given another.
   */
  readonly subject?: string | undefined
}

/** Options with the context of the run, whatever it is. */
export type InContext<Options> = Options & { readonly context?: unknown }

/** Options with the context that an agent needs: they may be left out where it needs none. */
export type Given<Options, Context> =
  Partial<ContextOption<Context>> extends ContextOption<Context>
    ? [options?: Options & ContextOption<Context>]
    : [options: Options & ContextOption<Context>]

/** What a run that is taken up goes on with. */
export interface ResumeOptions<Output = unknown, in Context = AnyContext> {
  /** The agent that the run was started with, for the type of its output; it need not be among those of the runtime. */
  readonly agent?: Agent<Output, Context> | undefined
  /** What the application gives the run: it is not recorded, so it has to be given again. */
  readonly context?: unknown
}

/** What one run of a session may have of its own. */
export interface SessionRunOptions extends Omit<RunOptions, 'sessionId' | 'whenBusy'> {
  /**
   * As for `Runtime.run`; and `join`: the input goes into the run that is under way, at its next turn, and that run is
   * the answer. Resolves when the run has shown the input to its model, or is suspended with the input on record. A run
   * that ends without showing it is no answer: the input then begins the next run of the session. So a tool must not
   * await a join of the run whose call it is.
   *
   * Joining takes no run over whose process is gone: it rejects with a `LedgerConflictError` of kind `session` where that
   * is known, else when nothing is recorded of the run for `quietMs`. Where the input was sent by then, the run's inbox
   * keeps it, `busy.inputId` of the error names it, and `resume` reads it.
   */
  readonly whenBusy?: 'conflict' | 'wait' | 'join' | undefined
  /**
   * With `join`, a name of the input that is unique in the session, such as the id of the chat message. A retry under the
   * same name sends no second input: it is answered by the run that took the first. One is made unless given.
   */
  readonly inputId?: string | undefined
}

/** A conversation in the hands of a runtime. */
export interface RuntimeSession extends Session {
  /** Starts its next run, or joins the one that is under way. Rejects as the result of a run does. */
  run<Output, Context>(
    agent: Agent<Output, Context>,
    input: string | readonly UserPart[],
    ...options: Given<SessionRunOptions, Context>
  ): Promise<Run<Output>>
}

/** Starts runs and takes them up again. */
export interface Runtime {
  /**
   * Starts a run. It is under way when this returns. In a session it begins with what was said there; where another
   * process begins a run of the session at the same moment, one of the two gets a `LedgerConflictError`, or waits.
   *
   * `context` is what the application gives the run: it reaches its tools, hooks, guardrails, policies and instructions
   * made for it, and those of the agents that take over or run as its tools, and is never recorded.
   */
  run<Output, Context>(
    agent: Agent<Output, Context>,
    input: string | readonly UserPart[],
    ...options: Given<RunOptions, Context>
  ): Run<Output>
  /**
   * Starts a run that shares the first events of another, and goes on from there: with an edited message or result, or
   * another agent. Results on record are served as long as the fork asks for the same calls, so that it costs what it
   * does otherwise; its tools run from the first call that differs on, and writes only where somebody lets them
   * (`writes`). The run that is forked is not touched.
   */
  fork<Output, Context>(
    runId: string,
    options: ForkOptions & { readonly agent: Agent<Output, Context> } & ContextOption<Context>,
  ): Run<Output>
  fork<Output = unknown>(runId: string, options: InContext<ForkOptions>): Run<Output>
  /** A conversation: its runs, its history, its next run. It need not have begun. */
  session(sessionId: string): RuntimeSession
  /**
   * Takes a run up where its ledger ends: after a suspension, a crash, or from another process. A run that this
   * runtime is driving is joined, not driven twice. Child runs that were under way are taken over with it, whoever
   * drove them; a command to a run leaves those alone. The result rejects with `RunNotFoundError` for an unknown run,
   * and with `ConfigurationError` when its agent is not known, when the run was started with a context and none is
   * given, and when it is not of the agent that is given.
   */
  resume<Output, Context>(
    runId: string,
    options: { readonly agent: Agent<Output, Context> } & ContextOption<Context>,
  ): Run<Output>
  resume<Output = unknown>(runId: string, options?: InContext<object>): Run<Output>
  /**
   * Settles a tool call that was deferred: its result is a text, parts, or what went wrong. The run goes on in this
   * process. A call that does not wait to be settled is a refusal, not an error; a second settling changes nothing.
   */
  settle(
    runId: string,
    toolCallId: string,
    result: SettledResult,
    options?: InContext<object>,
  ): Promise<CommandAcknowledgement>
  /**
   * The runs of the ledger that only a command can take further, and what they wait for. Child runs are not listed by
   * themselves: what they wait for, the run at the top waits for.
   */
  suspended(): AsyncGenerator<RunResult, void, undefined>
  /**
   * The runs of the ledger that have not ended, wait for nothing, and are driven by no process: a crash, a stop or a
   * failure of their ledger left them behind. `resume` takes them further; until then they keep their sessions busy.
   * `memoryLedger` knows who drives a run, and so does `sqliteLedger` while this process, or none, writes the file. Of
   * `postgresLedger`, and of a file that another process writes, nobody can know: see `quietMs`. Child runs are not
   * listed by themselves, but with the run at the top.
   */
  interrupted(options?: InterruptedOptions): AsyncGenerator<RunResult, void, undefined>
  /**
   * For a stop signal. Starts nothing more, lets what is in flight end for `graceMs` (5 seconds), stops the rest, and
   * returns the result of each run as it stopped. `resume` continues them, in any process; this runtime starts no more runs, and
   * refuses commands. A run whose writer fails meanwhile is not among the answers: its handle says why.
   */
  drain(graceMs?: number): Promise<readonly RunResult[]>
  /**
   * Resolves when no run is being driven here any more: each has stopped, and the ends of child runs were reported to
   * their parents, which were resumed. Then the ledger may be closed.
   */
  idle(): Promise<void>
}

/** How a deferred call ended: a text or parts for a success, or what went wrong. */
export type SettledResult = string | readonly ResultPart[] | { readonly failed: string }
