import {
  type Agent,
  createRuntime,
  type Ledger,
  LedgerUnavailableError,
  type PendingApproval,
  type Prices,
  type Run,
  type RunId,
  type RunResult,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  omitUndefined,
  option,
  type Schema,
  requireOptions,
  someLedger,
  somePrices,
} from '@tallystick/core/internal'
import type { JsonObject, StandingOptions } from '@tallystick/core/vocabulary'
import { manualClock, type ManualClock, steeredClock, waitUntilSettled } from '../doubles/clock.ts'
import { volatileLedger } from '../doubles/ledger.ts'
import { crashPoint, type CrashPoint, mortalLedger, type MortalLedger, SimulatedCrash } from './faults.ts'
import { seededRandom } from '../seeded-random.ts'

const {
  anyFunction,
  anyObject,
  anyText,

  fields,
  filledText,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  plainFunction,
  trueOrFalse,
} = option

const seq = numberFrom(1, { whole: true })

/** Refuses what would not happen to a run: a test of a crash that never comes passes. */
const simulationOptions = fields<Simulation>(
  {
    ledger: maybe(someLedger),
    clock: maybe(steeredClock),
    outside: maybe(anyFunction),
    random: maybe(plainFunction),
    agentOf: plainFunction,
    input: maybe(anyText),
    context: maybe(() => undefined),
    prices: maybe(somePrices),
    resume: maybe(filledText),
    crashes: maybe(listOf(crashPoint)),
    sessionId: maybe(filledText),
    subject: maybe(filledText),
    cancelAtSeq: maybe(seq),
    drainAtSeq: maybe(seq),
    inputs: maybe(
      listOf(
        fields<NonNullable<Simulation['inputs']>[number]>({
          atSeq: seq,
          delivery: oneOf(['steer', 'queue']),
        }),
      ),
    ),
    decide: maybe(plainFunction),
  },
  { agent: 'agentOf', seed: 'random', cancel: 'cancelAtSeq', drain: 'drainAtSeq' },
)

const personsAnswer: Schema = fields<{
  readonly approve: boolean
  readonly afterMs?: number | undefined
  readonly input?: unknown
  readonly standing?: unknown
  readonly reason?: string | undefined
}>({
  approve: trueOrFalse,
  afterMs: maybe(numberFrom(0)),
  input: maybe(anyObject),
  standing: maybe(anyObject),
  reason: maybe(anyText),
})

/** How a simulated run went. */
export interface Simulated {
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
  /** The recorded events of each child run. */
  readonly others: readonly (readonly RuntimeEvent[])[]
  readonly processes: number
  /** Every state that a subscriber of the last process saw live. */
  readonly lastStates: readonly RunState[]
}

/** More drive sessions than any run needs whose approvals are answered. */
const MAX_DRIVE_SESSIONS = 1_000

/** More stops of a run, in one process, than there are questions for any to ask. */
const MAX_STOPS = 200

/** Turns of the promise queue in which whatever follows from an answer of the ledger asks it for more. */
const FOLLOWING_TURNS = 1_000

/**
 * Drives a run to its end through crashes, approvals and a cancel, a new process after each death, and after each failure of the
 * ledger.
 */
export async function simulate(simulation: Simulation): Promise<Simulated> {
  requireOptions('simulate', simulationOptions, simulation)
  const { ledger = volatileLedger(), clock = manualClock(), random = seededRandom(1) } = simulation
  const { context, input = 'Go.', crashes = [] } = simulation
  let runId = simulation.resume
  let processes = 0
  let drained = false
  let lastError: unknown
  for (let session = 0; session < MAX_DRIVE_SESSIONS; session++) {
    const own = mortalLedger(ledger, crashes[processes])
    processes++
    const agent = simulation.agentOf(own)
    const host = { clock, random, report: () => {} }
    const runtime = createRuntime({
      ledger: own,
      agents: [agent],
      prices: simulation.prices ?? {},
      host,
      ...(context !== undefined && { contextOf: () => context }),
    })
    try {
      const { sessionId, subject, drainAtSeq } = simulation
      const run: Run = runId
        ? runtime.resume(runId)
        : runtime.run(agent, input, omitUndefined({ context, sessionId, subject }))
      runId = run.id
      let isDraining = false
      const drain = (): void => {
        if (drained) return
        drained = isDraining = true
        runtime.drain(GRACE_MS).catch(() => {})
      }
      run.events$.subscribe({ next: ({ seq }) => seq === drainAtSeq && drain(), error: () => {} })
      const lastStates: RunState[] = []
      run.state$.subscribe({ next: (state) => lastStates.push(state), error: () => {} })
      interfere(run, simulation)
      const result = await attend(
        run,
        { ...simulation, clock },
        {
          isDraining: () => isDraining,
          lastState: () => lastStates.at(-1),
          settleCall: (toolCallId) => runtime.settle(run.id, toolCallId, 'settled later'),
        },
      )
      if (result === undefined) {
        // The process ends before the next one begins, with all that it drives.
        await waitUntilSettled(clock, runtime.drain(GRACE_MS), simulation.outside)
        continue
      }
      const events = await readEvents(ledger, run.id)
      const others = await readOthers(ledger, run.id)
      return { result, events, others, processes, lastStates }
    } catch (error) {
      const isUnavailable = error instanceof LedgerUnavailableError
      if (!isUnavailable && !(error instanceof SimulatedCrash)) throw error
      lastError = error
      // The process lives: it lets go of the run before the next one takes it up.
      if (isUnavailable) await waitUntilSettled(clock, runtime.drain(GRACE_MS), simulation.outside)
      // The caller starts a run again that was never recorded.
      if (runId && (await ledger.head(runId)) === undefined) runId = undefined
    }
  }
  throw new Error(`The run did not end in ${MAX_DRIVE_SESSIONS} sessions.`, { cause: lastError })
}

async function readEvents(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) events.push(event)
  return events
}

async function readOthers(ledger: Ledger, runId: RunId): Promise<readonly (readonly RuntimeEvent[])[]> {
  const found: (readonly RuntimeEvent[])[] = []
  for await (const record of ledger.runs()) {
    if (record.runId !== runId) found.push(await readEvents(ledger, record.runId))
  }
  return found
}

/** Who the run may wait for. */
interface Outside {
  readonly isDraining: () => boolean
  readonly lastState: () => RunState | undefined
  readonly settleCall: (toolCallId: string) => Promise<unknown>
}

/** How long a drained process may take, in milliseconds. */
const GRACE_MS = 50

/**
 * Answers what the run asks, until it ends, or stops for something that cannot be answered. `undefined` if the next
 * process has to resume it.
 */
async function attend(
  run: Run,
  { clock, outside, decide = () => ({ approve: true }) }: Simulation & { readonly clock: ManualClock },
  { isDraining, lastState, settleCall }: Outside,
): Promise<RunResult | undefined> {
  for (let stops = 0; stops < MAX_STOPS; stops++) {
    const result = await waitUntilSettled(clock, run.result, outside)
    const limit = lastState()?.metLimit?.limit
    if (result.status === 'done') return result
    if (isDraining()) return undefined
    if (result.pendingApprovals.length > 0) answer(run, result.pendingApprovals, clock, decide)
    else if (result.deferredCalls.length > 0) {
      for (const { toolCallId } of result.deferredCalls) settleCall(toolCallId).catch(() => {})
    } else if (limit) run.raiseLimit(limit, Number.MAX_SAFE_INTEGER, { by: 'simulated' }).catch(() => {})
    else if (!(await hasWaited(outside))) return result
  }
  throw new Error(`The run has stopped ${MAX_STOPS} times, whatever the answers were: they lead nowhere.`)
}

/** Waits until nothing is under way outside, and for what follows from it; answers whether there was anything. */
async function hasWaited(outside: Simulation['outside'] = () => undefined): Promise<boolean> {
  let waited = false
  for (let underWay = outside(); underWay; underWay = outside()) {
    waited = true
    await underWay
    for (let turn = 0; turn < FOLLOWING_TURNS; turn++) await Promise.resolve()
  }
  return waited
}

/** Cancels the run, and sends it inputs, while it works. */
function interfere(run: Run, { cancelAtSeq, inputs = [] }: Simulation): void {
  run.events$.subscribe({
    next: ({ seq }) => {
      if (seq === cancelAtSeq) run.cancel('simulated').catch(() => {})
      for (const input of inputs) {
        if (input.atSeq === seq) run[input.delivery](`Said at ${seq}.`).catch(() => {})
      }
    },
    error: () => {},
  })
}

function answer(
  run: Run,
  pending: readonly PendingApproval[],
  clock: ManualClock,
  decide: NonNullable<Simulation['decide']>,
): void {
  for (const approval of pending) {
    const decision = decide(approval)
    // Refuses a decision that neither approves nor gives a reason.
    requireOptions('simulate', personsAnswer, decision, 'what decide returned')
    if (!decision.approve)
      requireOptions('simulate', anyText, decision.reason, 'the reason that decide returned')
    if (decision.afterMs !== undefined) clock.advance(decision.afterMs)
    const { approvers = [], approvals = [] } = approval
    // Where several people have to approve, each time another one does.
    const by = `simulated ${approvals.length + 1}`
    const roles = approvers.flatMap((demand) => demand.roles ?? [])
    const sent = decision.approve
      ? run.approve(approval, {
          by,
          ...(roles.length > 0 && { roles }),
          ...omitUndefined({ input: decision.input, standing: decision.standing }),
        })
      : run.deny(approval, { by, reason: decision.reason })
    sent.catch(() => {})
  }
}

/** A person's answer to an approval, `afterMs` later. */
export type SimulatedDecision = { readonly afterMs?: number | undefined } & (
  | {
      readonly approve: true
      readonly input?: JsonObject | undefined
      readonly standing?: StandingOptions | undefined
    }
  | { readonly approve: false; readonly reason: string }
)

/** A run, and what is to happen to it. */
export interface Simulation {
  /** Outlives every process. Fresh, or holding the run that `resume` names. Default: a `volatileLedger`. */
  readonly ledger?: Ledger | undefined
  /** Default: a `manualClock`. */
  readonly clock?: ManualClock | undefined
  /**
   * Returns what a tool, a model or the ledger waits for outside of this code, such as a file or a server; see `waitUntilSettled`.
   */
  readonly outside?: (() => Promise<unknown> | undefined) | undefined
  /** Randomness of the runtime, from 0 to 1. Default: `seededRandom(1)`. */
  readonly random?: (() => number) | undefined
  /** The agent as each process makes it; it gets its process's view of the ledger. */
  readonly agentOf: (ledger: MortalLedger) => Agent<unknown>
  /** What the user says. Default: `Go.` */
  readonly input?: string | undefined
  /** The context of the run, for an agent that needs one. */
  readonly context?: unknown
  readonly prices?: Prices | undefined
  /** Takes this run up instead of starting one. */
  readonly resume?: RunId | undefined
  /** Where the first, the second … process dies. Those after the last live. */
  readonly crashes?: readonly CrashPoint[] | undefined
  /** The session that the run is in. */
  readonly sessionId?: string | undefined
  /** Whom the run is about. */
  readonly subject?: string | undefined
  /** Cancels when the event of this number is seen. */
  readonly cancelAtSeq?: number | undefined
  /** Drains the process that sees the event of this number, once; the next process resumes the run. */
  readonly drainAtSeq?: number | undefined
  /** Says something when the event of this number is seen. */
  readonly inputs?: readonly { readonly atSeq: number; readonly delivery: 'steer' | 'queue' }[] | undefined
  /** Answers approvals, each time as another person where several have to approve; approves everything where not given. */
  readonly decide?: ((pending: PendingApproval) => SimulatedDecision) | undefined
}
