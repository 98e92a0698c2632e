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
import { causesOf, type Cause } from './replay-causes.ts'
import { rulesAsRecorded } from './replay-prices.ts'

/** The first place where a run, driven again, does not do what was recorded. */
export interface Divergence {
  readonly seq: number
  /** Absent where the recording ends. */
  readonly recorded?: RuntimeEvent
  /** Absent where nothing happened. */
  readonly happened?: RuntimeEvent
  /** What differs between the two, by path. */
  readonly differences: readonly Difference[]
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
 * `agentNamed` finds the agent by its recorded name. Rejects with `RunNotFoundError` for an unknown run.
 */
export async function replayRun(
  ledger: Ledger,
  runId: RunId,
  agentNamed: (name: string) => Agent<unknown>,
): Promise<ReplayReport> {
  const recorded: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) recorded.push(event)
  const first = recorded[0]
  if (first?.type !== 'run_started') throw new RunNotFoundError(runId)

  let done = givenEvents(first, recorded)
  let state = recorded.slice(0, done).reduce<RunState | undefined>(evolve, undefined)
  while (done < recorded.length) {
    const next = recorded[done] as RuntimeEvent
    const agent = agentNamed(state?.agent ?? first.agent)
    const causes = await causesOf(state, recorded, done, agent)
    const messages = causes.map(({ message }) => message)
    const page = advance(state, messages, {
      writer: { runId, epoch: next.epoch },
      stamp: stampsOf(causes, next.at),
      rulesOf: (name) => rulesAsRecorded(agentNamed(name).rules, recorded, done),
    })
    const divergence = firstDifference(recorded, done, page.events)
    if (divergence) return { runId, events: divergence.seq - 1, divergence }
    // Times and waits are the recording's: the state goes on from what was recorded.
    for (const event of recorded.slice(done, done + page.events.length)) state = evolve(state, event)
    // What was recorded of a run that is still under way may end within a page.
    done = Math.min(done + page.events.length, recorded.length)
  }
  return { runId, events: done }
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
  from: number,
  happened: readonly RuntimeEvent[],
): Divergence | undefined {
  const next = recorded[from] as RuntimeEvent
  if (happened.length === 0) return { seq: next.seq, recorded: next, differences: [] }
  for (const [index, event] of happened.entries()) {
    const before = recorded[from + index]
    // The recording may end in the middle of what follows: a run that is still under way.
    if (before === undefined) return undefined
    const differences = differencesOf(comparable(before), comparable(event))
    if (differences.length > 0) return { seq: before.seq, recorded: before, happened: event, differences }
  }
  return undefined
}

/** An event without what depends on the hour and on chance. */
function comparable(event: RuntimeEvent): object {
  const { at: _at, ...rest } = event
  if (rest.type !== 'model_stream_failed') return rest
  const { retryAt, ...failed } = rest
  return { ...failed, retries: retryAt !== undefined }
}
