import {
  advance,
  evolve,
  RunNotFoundError,
  type Agent,
  type EventOf,
  type Ledger,
  type RunId,
  type RunState,
  type RuntimeEvent,
  type Stamp,
} from '@tallystick/core'
import { differencesOf, type Difference } from './difference.ts'
import { requireContent } from './removal/required-content.ts'
import { causesOf, type Cause } from './replay-causes.ts'
import { recordedWords, rulesAsRecorded, todaysWords, type Words } from './replay-words.ts'

/** The first place where a run, driven again, does not do what was recorded. */
export interface Divergence {
  readonly seq: number
  /** Absent where the recording ends. */
  readonly recorded?: RuntimeEvent
  /** Absent where nothing happened. */
  readonly happened?: RuntimeEvent
  /** What differs between the two, by path; of events of different types, that they are. */
  readonly differences: readonly Difference[]
}

/** How a run is driven again. */
export interface ReplayOptions {
  /**
   * What the agents tell their models: that of today's code (`today`, the default), so that any other word is a
   * difference, or what is on record (`recorded`), so that only what the code does is compared.
   */
  readonly definitions?: 'today' | 'recorded'
  /** Hears how many events happened again, page by page. */
  readonly onEvents?: (events: number) => void
}

/** What driving a run again found. */
export interface ReplayReport {
  readonly runId: RunId
  /** Events that happened again as they were recorded, from the first on. */
  readonly events: number
  readonly divergence?: Divergence
}

/**
 * Drives the machine and the given agent's code again with what the run was told from outside: recorded model streams,
 * tool results, commands and times. Makes no model call and runs no tool; the tools' own checks, which say what runs
 * and what a person is asked, are the code of today. Reports the first event that differs.
 *
 * `agentNamed` finds the agent by its recorded name. Rejects with `RunNotFoundError` for an unknown run, and with
 * `ConfigurationError` for one of which content is gone or sealed.
 */
export async function replayRun(
  ledger: Ledger,
  runId: RunId,
  agentNamed: (name: string) => Agent<unknown>,
  { definitions = 'today', onEvents }: ReplayOptions = {},
): Promise<ReplayReport> {
  const recorded: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) recorded.push(event)
  const first = recorded[0]
  if (first?.type !== 'run_started') throw new RunNotFoundError(runId)
  requireContent(recorded)
  const driven = { recorded, agentNamed, words: definitions === 'recorded' ? recordedWords : todaysWords }
  let done = givenEvents(first, recorded)
  let state = recorded.slice(0, done).reduce<RunState | undefined>(evolve, undefined)
  onEvents?.(done)
  while (done < recorded.length) {
    const happened = await nextPage(driven, state, done)
    // What was recorded of a run that is still under way may end within a page.
    const page = recorded.slice(done, done + Math.max(1, happened.length))
    const divergence = firstDifference(page, happened, state)
    if (divergence) return { runId, events: divergence.seq - 1, divergence }
    // Times and waits are the recording's: the state goes on from what was recorded.
    for (const event of page) state = evolve(state, event)
    done += page.length
    onEvents?.(page.length)
  }
  return { runId, events: done }
}

/** What a run is driven again with. */
interface Driven {
  readonly recorded: readonly RuntimeEvent[]
  readonly agentNamed: (name: string) => Agent<unknown>
  readonly words: Words
}

/** What happens in a state by what the outside said next, up to where the machine has to wait for more. */
async function nextPage(
  { recorded, agentNamed, words }: Driven,
  state: RunState | undefined,
  from: number,
): Promise<readonly RuntimeEvent[]> {
  const next = recorded[from] as RuntimeEvent
  const name = state?.agent ?? (next.type === 'run_started' ? next.agent : '')
  const causes = await causesOf({ before: state, recorded, from, agent: agentNamed(name), words })
  const messages = causes.map(({ message }) => message)
  const { events } = advance(state, messages, {
    writer: { runId: next.runId, epoch: next.epoch },
    stamp: stampsOf(causes, next.at),
    rulesOf: (agent) => rulesAsRecorded(agentNamed(agent).rules, words, { recorded, from }),
  })
  return events
}

/** The time of each cause, and for what follows from them that of the last: the machine knows no other. */
function stampsOf(causes: readonly Cause[], otherwise: number): () => Stamp {
  let asked = 0
  const last = causes.at(-1)?.at ?? otherwise
  return () => ({ at: causes[asked++]?.at ?? last, random: 0 })
}

/** A fork begins with what another run did, and with its edits: they are given, and all of its first epoch. */
function givenEvents(first: EventOf<'run_started'>, recorded: readonly RuntimeEvent[]): number {
  if (first.parent?.relation !== 'fork') return 0
  const own = recorded.findIndex(({ epoch }) => epoch > first.epoch)
  return own === -1 ? recorded.length : own
}

function firstDifference(
  recorded: readonly RuntimeEvent[],
  happened: readonly RuntimeEvent[],
  state: RunState | undefined,
): Divergence | undefined {
  const next = recorded[0] as RuntimeEvent
  if (happened.length === 0) return { seq: next.seq, recorded: next, differences: [] }
  for (const [index, event] of happened.entries()) {
    const before = recorded[index]
    // The recording may end in the middle of what follows: a run that is still under way.
    if (before === undefined) return undefined
    const differences = betweenEvents(before, event, state)
    if (differences.length > 0) return { seq: before.seq, recorded: before, happened: event, differences }
  }
  return undefined
}

function betweenEvents(
  before: RuntimeEvent,
  event: RuntimeEvent,
  state: RunState | undefined,
): readonly Difference[] {
  if (before.type !== event.type) return [{ path: 'type', recorded: before.type, happened: event.type }]
  return differencesOf(comparable(before, state), comparable(event, state))
}

/** An event without what depends on the hour and on chance. */
function comparable(event: RuntimeEvent, state: RunState | undefined): object {
  const { at: _at, ...rest } = event
  // A take-over names the definition where it is not the one in force before, which both are compared by.
  if (rest.type === 'run_resumed') return { definition: state?.definition, ...rest }
  if (rest.type !== 'model_stream_failed') return rest
  const { retryAt, ...failed } = rest
  return { ...failed, retries: retryAt !== undefined }
}
