import { type OutsideCommand, outsideCommand } from '../events/commands.ts'
import { ignoreEnded } from '../ledger/append-rules.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { decide } from '../machine/decide.ts'
import { ConfigurationError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId, type RunId, extractRunId } from '../values/ids.ts'
import { anyObject, fields, filledText, maybe, milliseconds, type Schema } from '../values/option.ts'
import { placeFault } from '../values/schema.ts'
import { canContinue, hasEnded, isDescendantOf } from './children.ts'
import {
  type CommandAcknowledgement,
  createDuplicateSendError,
  findSentBefore,
  isOvertaken,
  refuseAtEnd,
  SentCommands,
  refuseUnknownCall,
} from './commands.ts'
import { findChangedInputRefusal } from './inbox.ts'
import { isDrivenByOther } from './leases.ts'
import type { RunLoop } from './run-loop.ts'
import { loadState, readStart, type RunResult } from './run-result.ts'
import type { RunRegistry } from './run-registry.ts'
import { refuseMalformedCommand } from './run.ts'
import { type CancelSignal, requireRunOptions, someSignal } from './runtime-options.ts'
import type { RuntimeParts } from './runtime-parts.ts'
import type { RunInput } from './start-run.ts'

/** How a stretch of driving a run ended, and what has to happen next. */
export interface Rest {
  /**
   * - `done`: the run has ended.
   * - `waiting`: the run is suspended: it continues by a command, or at `wakeAt`.
   * - `parked`: the run waits only for a time that is further away than `parkMs`, such as a retry-after; it continues at `wakeAt`.
   * - `handedBack`: the stretch was told to end, by `maxMs`, its signal or a drain of the runtime: drive the run again, here or
   *   elsewhere.
   * - `lost`: another process drives the run. What was under way here was told to stop. `wakeAt` is when its lease ends unless that
   *   process renews it: should it be dead, the run has to be driven then.
   */
  readonly status: 'done' | 'waiting' | 'parked' | 'handedBack' | 'lost'
  readonly runId: RunId
  /** The number of the run's last event that this process knows. */
  readonly seq: number
  /**
   * The earliest time at which the run or a child run has something to do by itself, in milliseconds since 1970 UTC. Absent
   * if only a command can wake it.
   */
  readonly wakeAt?: number
  /** A command has come that nobody has decided yet, for the run or a child run: drive the run again. */
  readonly pending: boolean
  /** Runs that it has started as a schedule, the last one until that has ended: they are on record, and have to be driven. */
  readonly started?: readonly RunId[]
}

/** How a run begins that a driver starts: plain JSON, which an engine carries to whichever process drives it first. */
export interface StartData {
  /** The name of an agent that the runtime of each worker knows. */
  readonly agent: string
  /** The user's message, or the messages with which the run begins. */
  readonly input: RunInput
  /** Options of `runtime.run` that are JSON, such as `sessionId`, `limits`, `subject` and `metadata`. */
  readonly options?: Readonly<Record<string, unknown>> | undefined
}

export interface DriveOptions {
  /** Starts the run if it is not on record. One that is there is driven as it is. */
  readonly start?: StartData | undefined
  /** Hands the run back when it is aborted: starts nothing more, and gives what is in flight `graceMs` to end. */
  readonly signal?: CancelSignal | undefined
  /**
   * Hands the run back after this time, once what is in flight has ended, however long that takes. That may be within a turn: the
   * next stretch begins the calls that are left. In milliseconds; default: never.
   */
  readonly maxMs?: number | undefined
  /** Parks a run that waits only for a time that is further away than this, in milliseconds. Default: 5 seconds. */
  readonly parkMs?: number | undefined
  /** How long what is in flight may take after `signal`, in milliseconds; then it is stopped. Default: 5 seconds. */
  readonly graceMs?: number | undefined
  /** The application's context of the run, as for `resume`. */
  readonly context?: unknown
}

/** Options of a command that another process is to carry out. */
export interface PostOptions {
  /** The place of the command in the run's inbox: a retry under the same key puts no second command. */
  readonly key: string
  /** A transaction of the ledger's database, as for `put` of the ledger: the command is there once that is committed. */
  readonly within?: unknown
}

const startData = fields<StartData>({
  agent: filledText,
  input: (value) => (value === undefined ? { path: '', what: 'is missing' } : undefined),
  options: maybe(anyObject),
})

export const driveOptions: Schema = fields<DriveOptions>(
  {
    start: maybe(startData),
    signal: maybe(someSignal),
    maxMs: maybe(milliseconds),
    parkMs: maybe(milliseconds),
    graceMs: maybe(milliseconds),
    context: maybe(() => undefined),
  },
  { timeoutMs: 'maxMs' },
)

export const postOptions: Schema = fields<PostOptions>(
  { key: filledText, within: maybe(() => undefined) },
  { idempotencyKey: 'key' },
)

/**
 * A stretch of driving: a run and its child runs, until they rest or are handed back. Loops that drive one of them ask it how
 * long they may wait, and are drained with it.
 */
export class Stretch {
  /** A loop that waits only for a time further away than this stops, in milliseconds. */
  readonly parkMs: number
  readonly whenHandedBack: Promise<'handedBack'>
  /** Runs that a schedule has started, and that are driven by nobody yet. */
  readonly started: Set<RunId> = new Set()
  readonly #loops = new Set<RunLoop>()
  readonly #onHandedBack: () => void
  #graceMs: number | undefined

  constructor(parkMs: number) {
    this.parkMs = parkMs
    const handedBack = Promise.withResolvers<'handedBack'>()
    this.whenHandedBack = handedBack.promise
    this.#onHandedBack = () => handedBack.resolve('handedBack')
  }

  get isHandedBack(): boolean {
    return this.#graceMs !== undefined
  }

  /** A loop begins to drive. Returns what ends that. */
  began(loop: RunLoop): () => void {
    this.#loops.add(loop)
    if (this.#graceMs !== undefined) loop.drain(this.#graceMs)
    return () => void this.#loops.delete(loop)
  }

  /** Begins nothing more; what is in flight has this time to end, in milliseconds. */
  handBack(graceMs: number): void {
    this.#graceMs = Math.min(graceMs, this.#graceMs ?? Infinity)
    for (const loop of this.#loops) loop.drain(this.#graceMs)
    this.#onHandedBack()
  }
}

const [defaultParkMs, defaultGraceMs] = [5_000, 5_000]

/** As long as it takes. */
const UNLIMITED_MS = 2 ** 52

/** Drives a run until it rests. */
export async function driveRun(
  runs: RunRegistry,
  text: string,
  { start, signal, maxMs, parkMs = defaultParkMs, graceMs = defaultGraceMs, context }: DriveOptions,
): Promise<Rest> {
  runs.requireOpen()
  const runId = parseRunId(text)
  if (runId === undefined) throw new RunNotFoundError(text)
  const { ledger, host } = runs.parts
  const stretch = new Stretch(parkMs)
  const stopTimer =
    maxMs === undefined ? undefined : host.clock.schedule(maxMs, () => stretch.handBack(UNLIMITED_MS))
  const onAbort = (): void => stretch.handBack(graceMs)
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted) onAbort()
  try {
    const isToStart = start !== undefined && (await ledger.head(runId)) === undefined
    const result = isToStart
      ? await startDriven(runs, runId, start, { context, stretch })
      : await resumeDriven(runs, runId, { context, stretch })
    const rest =
      result === 'handedBack' ? await toHandedBack(runId, ledger) : await toRest(result, stretch, runs.parts)
    return stretch.started.size === 0 ? rest : { ...rest, started: [...stretch.started] }
  } catch (error) {
    // Child runs are driven for this run alone.
    stretch.handBack(graceMs)
    if (!isDrivenByOther(error) && !isOvertaken(error)) throw error
    const { seq = 0 } = (await ledger.head(runId)) ?? {}
    const lease = await ledger.lease(runId)
    const wakeAt = host.clock.now() + (lease?.leftMs ?? 0)
    return { status: 'lost', runId, seq, wakeAt, pending: false }
  } finally {
    stopTimer?.()
    signal?.removeEventListener('abort', onAbort)
  }
}

interface Driven {
  readonly context: unknown
  readonly stretch: Stretch
}

async function resumeDriven(
  runs: RunRegistry,
  runId: RunId,
  { context, stretch }: Driven,
): Promise<RunResult | 'handedBack'> {
  const driver = runs.driverFor(runId, { context })
  const isJoined = driver.isDrivenHere
  const result = driver.resume({ withChildren: true, stretch })
  return await (isJoined ? waitUntilHandedBack(result, stretch) : result)
}

/** Another drive of this process drives the run, and goes on without this stretch. */
function waitUntilHandedBack(
  result: Promise<RunResult>,
  { whenHandedBack }: Stretch,
): Promise<RunResult | 'handedBack'> {
  return Promise.race([result, whenHandedBack])
}

async function startDriven(
  runs: RunRegistry,
  runId: RunId,
  { agent: name, input, options = {} }: StartData,
  { context, stretch }: Driven,
): Promise<RunResult | 'handedBack'> {
  requireRunOptions(options)
  requireNoWait('drive', options['whenBusy'])
  const agent = runs.parts.agents.find(name)
  if (agent === undefined) {
    throw new ConfigurationError(
      `Run ${runId} is to be started with the agent ${name}, which this runtime does not know. Give it to createRuntime in agents.`,
    )
  }
  const { driver, same } = runs.start(agent, input, { ...options, context }, { runId, stretch })
  await same
  return await (same ? waitUntilHandedBack(driver.result, stretch) : driver.result)
}

async function toHandedBack(runId: RunId, ledger: Ledger): Promise<Rest> {
  const { seq = 0 } = (await ledger.head(runId)) ?? {}
  return { status: 'handedBack', runId, seq, pending: (await ledger.inbox(runId)).length > 0 }
}

async function toRest(
  result: RunResult,
  { isHandedBack }: Stretch,
  { ledger, host }: RuntimeParts,
): Promise<Rest> {
  const { runId, seq, status, wakeAt = Infinity } = result
  if (status === 'done') return { status, runId, seq, pending: false }
  const now = host.clock.now()
  // A command that came for a child run too late for the driver of that continues this one, too.
  const isAsked =
    (await ledger.inbox(runId)).length > 0 || (await canContinue(ledger, runId, { withChildren: false, now }))
  const rest = { runId, seq, pending: isAsked, ...(wakeAt < Infinity && { wakeAt }) }
  // What is due was left off: a child run that its parent waits for, too, and by a drain of the whole runtime.
  if (wakeAt <= now) return { ...rest, status: 'handedBack' }
  return { ...rest, status: status === 'suspended' ? 'waiting' : isHandedBack ? 'handedBack' : 'parked' }
}

/**
 * Puts a command into the inbox of a run, if the run as it is on record allows it, and drives nothing. The process that drives
 * the run next decides about it. The answer names the run to wake.
 */
export async function postCommand(
  parts: RuntimeParts,
  text: string,
  command: OutsideCommand,
  { key, within }: PostOptions,
): Promise<CommandAcknowledgement & { readonly wake: RunId }> {
  const { ledger, host } = parts
  const runId = parseRunId(text)
  if (runId === undefined) throw new RunNotFoundError(text)
  const fault = placeFault('the command', outsideCommand(command))
  if (fault) return { ...refuseMalformedCommand('post', fault), wake: runId }
  const asked = ('toolCallId' in command && extractRunId(command.toolCallId)) || runId
  const wake = await findOpenRoot(ledger, runId)
  if (!(await isDescendantOf(ledger, asked, runId)))
    return { accepted: false, ...refuseUnknownCall(runId), wake }
  const state = await loadState(ledger, asked)
  if (state === undefined) throw new RunNotFoundError(asked)
  const decision = decide(state, command, { at: host.clock.now(), random: host.random() })
  const refusal =
    'refused' in decision
      ? decision.refused
      : await findChangedInputRefusal(command, {
          ...{ runId: asked, ledger, agents: parts.agents, clock: host.clock, context: undefined },
        })
  if (refusal) {
    if (await isObeyed(ledger, runId, command, key)) return { accepted: true, wake }
    const sent = new SentCommands(asked, ledger, host.clock)
    return { ...(await sent.refused(command, refusal)), wake }
  }
  // The root is driven, and hands a command about a call of a child run down to it: in the inbox of that one, it would come too
  // late for a root that is about to rest.
  const target = 'toolCallId' in command ? wake : runId
  const isFresh = await ignoreEnded(ledger.put(target, { key, command, at: host.clock.now() }, { within }))
  if (isFresh === undefined) {
    if (await isObeyed(ledger, runId, command, key)) return { accepted: true, wake }
    return { accepted: false, ...refuseAtEnd(target), wake }
  }
  if (!isFresh) {
    for (const each of new Set([target, asked])) {
      if ((await findSentBefore(ledger, each, command, key)) === 'another')
        throw createDuplicateSendError(each, key)
    }
  }
  return { accepted: true, wake }
}

/**
 * True for a command that was obeyed before under its key. Where it is refused now, that may be for its own effect: its first
 * answer was lost.
 */
export async function isObeyed(
  ledger: Ledger,
  runId: RunId,
  command: OutsideCommand,
  key: string,
): Promise<boolean> {
  const asked = ('toolCallId' in command && extractRunId(command.toolCallId)) || runId
  if (!(await isDescendantOf(ledger, asked, runId))) return false
  return (await findSentBefore(ledger, asked, command, key)) === 'record'
}

/** Finds the run to drive for a run: the highest one above it that has not ended, nor was dropped. */
export async function findOpenRoot(ledger: Ledger, runId: RunId): Promise<RunId> {
  let root = runId
  for (;;) {
    const above: RunId | undefined = await readParent(ledger, root)
    if (above === undefined || !(await ledger.head(above)) || (await hasEnded(ledger, above))) return root
    root = above
  }
}

async function readParent(ledger: Ledger, runId: RunId): Promise<RunId | undefined> {
  const start = await readStart(ledger, runId)
  if (start === undefined) throw new RunNotFoundError(runId)
  return start.parent?.relation === 'child' ? start.parent.runId : undefined
}

/** Refuses a start that would wait in this process for as long as the other runs of its session take. */
export function requireNoWait(verb: 'drive' | 'enqueue', whenBusy: unknown): void {
  if (whenBusy !== 'wait') return
  throw new ConfigurationError(
    `${verb}: whenBusy is wait, but ${verb} does not wait for other runs. Leave it out: while another run of the session is under way, ${verb} rejects with a LedgerConflictError of kind session; try again when that one has ended.`,
  )
}
