import {
  createRuntime,
  type Agent,
  type Ledger,
  type Run,
  type RunId,
  type RunResult,
  type Runtime,
  type RuntimeEvent,
} from '@tallystick/core'
import { type FinishReason } from '@tallystick/core/vocabulary'
import type { Stage } from './crash-effects.ts'
import type { World } from './crash-world.ts'

/**
 * A user who wants something of an agent, and who asks for what is missing of it, however far the processes before
 * have come.
 */
export interface User {
  readonly runtime: Runtime
  readonly ledger: Ledger
  readonly agent: Agent<unknown>
  readonly world: World
  /** The conversation that all of it belongs to. */
  readonly session: string
}

/** One thing that the user sees to, by looking at what is there first. */
export type Step = (user: User) => Promise<unknown>

/** Runs that any process can continue with, and how they have to end. */
export interface Scenario {
  readonly name: string
  /** The agent that the user asks; those that it works with are reached from it. */
  readonly agent: (stage: Stage) => Agent<unknown>
  readonly steps: readonly Step[]
  /** How the runs of each session end, the first first. Sessions are named by what follows the user's own. */
  readonly ends: Readonly<Record<string, readonly End[]>>
}

export interface End {
  readonly reason: FinishReason
  readonly text: RegExp
}

/** A user with a runtime of its own; errors that no caller on the stack handles go to `report`. */
export function userOf(scenario: Scenario, { ledger, session, report, ...stage }: Stage & UserPlace): User {
  const agent = scenario.agent(stage)
  const runtime = createRuntime({ ledger, agents: [agent], host: { report } })
  return { runtime, ledger, agent, world: stage.world, session }
}

/** Where a user is at work. */
export interface UserPlace {
  readonly ledger: Ledger
  readonly session: string
  readonly report: (error: unknown) => void
}

/** The runs of a session, the first first. */
export async function runsOf({ ledger, session }: User, suffix = ''): Promise<readonly RunId[]> {
  const records = await Array.fromAsync(ledger.runs({ sessionId: session + suffix }))
  return records.map(({ runId }) => runId).reverse()
}

/** The run at a place of a session, from 0: begun if it is not there, else taken up where it is. */
export async function runAt(user: User, place: number, begin: () => Run, suffix = ''): Promise<Run> {
  const runId = (await runsOf(user, suffix))[place]
  return runId === undefined ? begin() : user.runtime.resume(runId)
}

/** Asks the agent something in the session, and waits until the run rests. */
export function asking(text: string, place = 0): Step {
  return async (user): Promise<RunResult> => (await askedRun(user, text, place)).result
}

/** The run in which the agent is asked. */
export function askedRun(user: User, text: string, place = 0): Promise<Run> {
  return runAt(user, place, () => user.runtime.run(user.agent, text, { sessionId: user.session }))
}

/** Does something once when an event is seen that was looked for, of those before and those to come. */
export function whenSeen(
  run: Run,
  isLookedFor: (event: RuntimeEvent) => boolean,
  act: () => Promise<unknown>,
): void {
  let seen = false
  run.events$.subscribe({
    next(event) {
      if (seen || !isLookedFor(event)) return
      seen = true
      // A command to a run whose writer has failed rejects; the run's own result says why.
      act().catch(() => undefined)
    },
    error: () => undefined,
  })
}
