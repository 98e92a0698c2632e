import type { Host } from '../../values/host.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Model } from '../../models/model.ts'
import type { AnyContext, RecordingPolicy } from '../../events/agent-definition.ts'
import type { OutsideCommand } from '../../events/commands.ts'
import type { ResultPart } from '../../events/content.ts'
import type { GivenLimits } from '../../events/limits.ts'
import type { ModelSettings } from '../../events/model-request.ts'
import type { Agent } from '../agent/agent.ts'
import type { GivenHooks } from '../agent/hooks.ts'
import type { RuntimeRules } from '../agent/runtime-rules.ts'
import type { ForkOptions } from '../fork/fork.ts'
import type { Prices } from '../agent/price-check.ts'
import type { GivenToolChoice, LabelOptions } from '../definition/given-labels.ts'
import type { RecordedRun } from '../definition/runtime-parts.ts'
import type { ContextOption } from '../definition/run-context.ts'
import type { CommandAcknowledgement } from '../commands/sent-commands.ts'
import type { RunResult } from '../reading/run-result.ts'
import type { CancelSignal } from './cancel-signal.ts'
import type { Run } from './run.ts'
import type { RunInput } from '../session/run-input.ts'
import type { Session } from '../session/session.ts'
import type { PastOptions } from '../session/session-past.ts'

/** The parts of a runtime. */
export interface RuntimeOptions extends RuntimeRules {
  readonly ledger: Ledger
  /** The agents that a resume can find by the name in the ledger. Agents passed to `run` are known as well. */
  readonly agents?: readonly Agent<unknown>[] | undefined
  /** Prices of models: by model id, or as a function. Without a price a run has no cost, and no `maxCostUsd`. */
  readonly prices?: Prices | undefined
  /**
   * Makes the context of a run that was started with one, if this process continues the run without being given it: at
   * a resume, a settling, or the end of a child run. It gets the recorded facts of the run, and may be async.
   */
  readonly contextOf?: ((run: RecordedRun) => unknown) | undefined
  /** The model of all runs that are not given one; it replaces their agents' models. */
  readonly model?: Model | undefined
  /** Model settings of all runs. The run's own override them; they override the agent's. */
  readonly modelSettings?: ModelSettings | undefined
  /** Limits of all runs. The run's own override them; they override the agent's. */
  readonly limits?: GivenLimits | undefined
  /**
   * Which of the events that nothing else depends on all runs record. The run's own setting overrides it; it overrides
   * the agent's.
   */
  readonly recording?: RecordingPolicy | undefined
  /** Functions that observe all runs, beside those of each run. */
  readonly hooks?: GivenHooks | undefined
  /** Models that runs are given as `model`, for a resume in this process to find them by the names on record. */
  readonly models?: readonly Model[] | undefined
  /**
   * What a resume does when the agent's code differs from the recorded definition: `continue` with the code, and
   * record it (the default), or `refuse`.
   */
  readonly onDrift?: 'continue' | 'refuse' | undefined
  /** Time, timers, randomness, and the report of stray errors; each defaults to the one of the host. */
  readonly host?: { readonly [Part in keyof Host]?: Host[Part] | undefined } | undefined
}

/** Options of one run. Those about models and tools also apply to the agents that take over in it. */
export interface RunOptions extends PastOptions, LabelOptions {
  /** Limits of this run, over those of the agent. */
  readonly limits?: GivenLimits | undefined
  /**
   * The model of this run. It replaces its agents' models; their fallbacks stay. Its name is on record: a resume finds
   * the model among the `models` of its runtime or of its agents, or has to be given it.
   */
  readonly model?: Model | undefined
  /** Model settings of this run; each overrides the agent's. */
  readonly modelSettings?: ModelSettings | undefined
  /**
   * Whether the model must (`any`, or a tool by its name), may (`auto`) or must not (`none`) call tools. A model must
   * call a tool only in the first turn. `prepareTurn` can override it for a turn.
   */
  readonly toolChoice?: GivenToolChoice | undefined
  /** Whether the model may ask for several tools in one reply, whatever its agent says. */
  readonly parallelToolCalls?: boolean | undefined
  /** Which of the events that nothing else depends on the run records; it overrides its agents' settings. */
  readonly recording?: RecordingPolicy | undefined
  /**
   * Continues after a response that the provider keeps (`result.providerState` of an earlier run): the run sends only
   * its input, not the past. Not together with `conversationId` or a session.
   */
  readonly previousResponseId?: string | undefined
  /**
   * Continues a conversation that the provider keeps under this id; the provider adds the messages of this run to it.
   */
  readonly conversationId?: string | undefined
  /** Functions that observe the run. Not recorded: give them to a resume again. */
  readonly hooks?: GivenHooks | undefined
  /** Cancels the run when it is aborted. Not recorded: a resume continues without it. */
  readonly signal?: CancelSignal | undefined
  /**
   * When the run ends at the latest, as a `Date` or in milliseconds since 1970 UTC. It ends as `time_limit`, with an
   * answer if `onLimit` says so. Waiting for a person counts, unlike for `limits.maxDurationMs`. A run that waits at
   * that time ends when a process continues it.
   */
  readonly deadline?: Date | number | undefined
  /**
   * Starts the run once. Another start with the same key, in any process on the same ledger, returns that run, and
   * continues it if no process drives it. The agent, the input, the session, the subject, the owner and the given limits
   * have to be the same.
   */
  readonly idempotencyKey?: string | undefined
  /**
   * An id of the input, such as that of the chat message: `input_received` has it as its `receipt`. A session joins a run
   * with it: it is unique in the session then, a retry with the same id sends no second input and returns the run that took
   * the first, and it is generated if not given.
   */
  readonly inputId?: string | undefined
  /**
   * Whom the run is about, such as a customer, by a name that reveals nothing about them: the ledger stores it in the
   * clear. A ledger with keys encrypts what is said in the run for this subject, so that destroying the key erases
   * it. Runs of the session, branches, forks and child runs have the same subject, unless given another.
   */
  readonly subject?: string | undefined
  /**
   * Who starts the run, by the name that the application knows its callers by. It is on record, so that whatever process
   * drives the run makes the context of the one who started it, not of one who decides about it. Child runs have the same.
   */
  readonly owner?: string | undefined
}

/** Options with the context of the run, of any type. */
export type InContext<Options> = Options & { readonly context?: unknown }

/** Options with the context that an agent needs; optional if it needs none. */
export type Given<Options, Context> =
  Partial<ContextOption<Context>> extends ContextOption<Context>
    ? [options?: Options & ContextOption<Context>]
    : [options: Options & ContextOption<Context>]

/** Options for resuming a run. */
export interface ResumeOptions<Output = unknown, in Context = AnyContext> {
  /** The agent that the run was started with, for the type of its output; it need not be among those of the runtime. */
  readonly agent?: Agent<Output, Context> | undefined
  /** What the application passes to the run. It is not recorded, so pass it again. */
  readonly context?: unknown
  /** Functions that observe the run from here on. */
  readonly hooks?: GivenHooks | undefined
  /** The model that the run was started with, if it was given one and `createRuntime` does not know it. */
  readonly model?: Model | undefined
  /**
   * Takes the run over at once, whoever drives it. Without it, a resume follows the process that drives the run, and takes over
   * when that one's lease has ended: at once if the process has died on this machine, else within 12 seconds. Only for a process
   * that you know to be gone: if it lives, what its tools have under way may be done twice, until it learns of this.
   */
  readonly takeOver?: boolean | undefined
}

/** Options for sending a command. */
export interface SendOptions {
  /**
   * The place of the command in the run's inbox. A retry under the same key sends no second command: it rejects with
   * a `LedgerConflictError` of kind `unique`. Generated if not given.
   */
  readonly key?: string | undefined
}

/** Options of one run of a session. */
export interface SessionRunOptions extends Omit<
  RunOptions,
  'sessionId' | 'whenBusy' | 'previousResponseId' | 'conversationId'
> {
  /**
   * As for `Runtime.run`; and `join`: the input goes into the run that is under way, at its next turn, and `run`
   * returns that run. It resolves when the run has shown the input to its model, or is suspended with the input on
   * record. If the run ends without showing the input, the input begins the next run of the session. So a tool must
   * not await a join of the run whose call it is.
   *
   * Joining never takes over a run whose process is gone. It rejects with a `LedgerConflictError` of kind `session`:
   * once no process drives the run. If the input was sent by then, the run's inbox keeps it, `busy.inputId` of the error names it, and `resume` reads it.
   */
  readonly whenBusy?: 'conflict' | 'wait' | 'join' | undefined
}

/** A conversation of a runtime. */
export interface RuntimeSession extends Session {
  /** Starts its next run, or joins the one that is under way. Rejects as the result of a run does. */
  run<Output, Context>(
    agent: Agent<Output, Context>,
    input: RunInput,
    ...options: Given<SessionRunOptions, Context>
  ): Promise<Run<Output>>
}

/** Starts runs and resumes them. */
export interface Runtime {
  /** The ledger in which it records its runs. */
  readonly ledger: Ledger
  /**
   * Starts a run; it is under way when `run` returns. In a session it begins with the history of the session. If
   * another process begins a run of the session at the same moment, one of the two gets a `LedgerConflictError`, or
   * waits.
   *
   * The input is a text, message parts, or a conversation: messages in order, of which the user said the last. Those
   * before it are recorded as the past of the run, after the history of its session, and input guardrails check them.
   *
   * `context` is what the application passes to the run: its tools, hooks, guardrails, policies and instruction
   * functions receive it, and so do those of the agents that take over or run as its tools. It is never recorded.
   */
  run<Output, Context>(
    agent: Agent<Output, Context>,
    input: RunInput,
    ...options: Given<RunOptions, Context>
  ): Run<Output>
  /**
   * Starts a run that shares the first events of another run and continues after them: with an edited message or
   * result, or another agent. As long as the fork makes the same calls, it gets their recorded results. From the
   * first call that differs on its tools run for real, and its writes run only as `writes` allows. The forked run is
   * not changed.
   */
  fork<Output, Context>(
    runId: string,
    options: ForkOptions & { readonly agent: Agent<Output, Context> } & ContextOption<Context>,
  ): Run<Output>
  fork<Output = unknown>(runId: string, options: InContext<ForkOptions>): Run<Output>
  /** A conversation: its runs, its history, its next run. It need not have begun. */
  session(sessionId: string): RuntimeSession
  /**
   * Continues a run where its ledger ends: after a suspension, a crash, or from another process. If this runtime
   * drives the run already, `resume` joins it and does not drive it twice. If another process drives it, the handle follows it
   * there: it is taken over when that process has released it, or its lease has ended (see `takeOver`). Child runs that were
   * under way are taken over with it; by a command to a run they are not. The result rejects with `RunNotFoundError`
   * for an unknown run, and with `ConfigurationError` when its agent is not known, when the run was started with a
   * context and none is given, and when it is a run of another agent than the given one.
   */
  resume<Output, Context>(
    runId: string,
    options: { readonly agent: Agent<Output, Context> } & Pick<
      ResumeOptions,
      'model' | 'hooks' | 'takeOver'
    > &
      ContextOption<Context>,
  ): Run<Output>
  resume<Output = unknown>(
    runId: string,
    options?: InContext<Pick<ResumeOptions, 'model' | 'hooks' | 'takeOver'>>,
  ): Run<Output>
  /**
   * Sends a command to a run of any process. The process that drives the run decides about it; if none does, this
   * runtime takes the run over. A command that the run does not allow is refused, and one that is incomplete is refused as `malformed`, before anything is sent. Rejects
   * with `RunNotFoundError` for an unknown run. `ledger.put` puts a command there and waits for no decision.
   */
  send(
    runId: string,
    command: OutsideCommand,
    options?: InContext<SendOptions>,
  ): Promise<CommandAcknowledgement>
  /**
   * Settles a deferred tool call: its result is a text, parts, or an error. The run continues in this process. A call
   * that does not wait to be settled is a refusal, not an error; a second settling changes nothing. `by` and `reason` say who settled it
   * and why, for the record.
   */
  settle(
    runId: string,
    toolCallId: string,
    result: SettledResult,
    options?: InContext<
      Pick<ResumeOptions, 'model' | 'hooks'> & {
        readonly by?: string | undefined
        readonly reason?: string | undefined
      }
    >,
  ): Promise<CommandAcknowledgement>
  /**
   * The runs of the ledger that only a command can continue, and what they wait for. A child run is not listed: its
   * root run waits for the same.
   */
  suspended(): AsyncGenerator<RunResult, void, undefined>
  /**
   * The runs of the ledger that have not ended, wait for nothing, and are driven by no process, after a crash, a stop
   * or a failure of their ledger: the lease of their process has ended. `resume` continues them; until then they keep their
   * sessions busy. A child run is not listed, only its root run.
   */
  interrupted(): AsyncGenerator<RunResult, void, undefined>
  /**
   * For a stop signal. Starts nothing more, waits up to `graceMs` (5 seconds) for work in flight, stops the rest, and
   * returns the result of each run as it stopped. `resume` continues them, in any process; this runtime starts no
   * more runs and refuses commands. A run whose writer fails meanwhile is not in the result: its handle rejects with
   * the reason.
   */
  drain(graceMs?: number): Promise<readonly RunResult[]>
  /**
   * Resolves when this runtime drives no run any more: each run has stopped, and ended child runs were reported to
   * their parents, which were resumed. Close the ledger then: closing it earlier drains this runtime.
   */
  idle(): Promise<void>
}

/** How a deferred call ended: a text or parts for a success, or what went wrong. */
export type SettledResult = string | readonly ResultPart[] | { readonly failed: string }
