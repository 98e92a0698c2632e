import {
  type Agent,
  type Ledger,
  memoryLedger,
  type PendingApproval,
  type RuntimeEvent,
} from '@tallystick/core'
import { omitUndefined, option, requireOptions } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { manualClock, tickingClock } from '../doubles/clock.ts'
import { isVolatile, volatileLedger } from '../doubles/ledger.ts'
import { createAgent, type World } from './agents.ts'
import { mortalLedger } from './faults.ts'
import { type Program, seededRandom } from './plan.ts'
import { simulate, type Simulated, type SimulatedDecision, type Simulation } from './simulate.ts'

export type { CallPlan, Program, Step } from './plan.ts'
export type { World } from './agents.ts'

/** How a program went, and what its tools saw of the world. */
export type Played = Simulated & {
  readonly world: World
  readonly ledger: Ledger
  /** The events that were acknowledged and were lost with the power of the machine. */
  readonly lost: readonly RuntimeEvent[]
}

/** US dollars per million tokens. */
const prices = {
  'scripted-1': { inputUsd: 3, outputUsd: 15, source: 'test' },
  'scripted-2': { inputUsd: 1, outputUsd: 5, source: 'test' },
}

/** Longer than a random program gives a person to decide, in milliseconds. */
const LATE_MS = 25

/**
 * Answers the first, the second … approval as the list says, and approves the others. `edit` returns the input that a person puts
 * in place of the model's.
 */
export function decideAs(
  decisions: Program['decisions'],
  edit: (pending: PendingApproval) => JsonObject,
): (pending: PendingApproval) => SimulatedDecision {
  let decided = 0
  return (pending) => {
    switch (decisions[decided++] ?? 'approve') {
      case 'deny':
        return { approve: false, reason: 'not today' }
      case 'edit':
        return { approve: true, input: edit(pending) }
      case 'stand':
        return {
          approve: true,
          standing: { for: decided % 2 ? 'session' : 'equal_input', expiresInMs: 40 * decided },
        }
      case 'late':
        return { approve: true, afterMs: LATE_MS }
      case 'approve':
        return { approve: true }
    }
  }
}

const someProgram = option.valueThat(
  'a program, such as randomProgram of @tallystick/testkit/random makes',
  (value) => {
    const { steps, crashes } = Object(value) as { readonly steps?: unknown; readonly crashes?: unknown }
    return Array.isArray(steps) && Array.isArray(crashes)
  },
)

/** Plays a program to its end. On a ledger that is given, and cannot lose power, only its processes die. */
export async function playProgram(
  program: Program,
  start: Pick<Simulation, 'resume' | 'outside'> & { ledger?: Ledger; world?: World } = {},
): Promise<Played> {
  requireOptions('playProgram', someProgram, program, 'the program')
  requireOptions('playProgram', option.anyObject, start, 'the second argument')
  const { crashes, cancelAtSeq, drainAtSeq, subject, inputs, decisions, randomness } = program
  const world = start.world ?? createEmptyWorld()
  const clock = program.ticking ? tickingClock() : manualClock()
  const ledger = start.ledger ?? volatileLedger()
  const attempts = new Map<number, number>()
  const simulated = await simulate({
    prices,
    ledger,
    clock,
    random: seededRandom(randomness),
    input: 'Go.',
    crashes: isVolatile(ledger) ? crashes : crashes.map(({ unsyncedKept: _lost, ...crash }) => crash),
    inputs,
    ...(start.resume && { resume: start.resume }),
    ...(start.outside && { outside: start.outside }),
    ...omitUndefined({ subject, cancelAtSeq, drainAtSeq }),
    agentOf: (own) => createAgent(program, { world, ledger: own, attempts }),
    decide: decideAs(decisions, () => ({ do: 'succeed', edited: true })),
  })
  return { ...simulated, world, ledger, lost: isVolatile(ledger) ? ledger.lost : [] }
}

/**
 * The agent of a program, for replays, which call no model and run no tool. Other `instructions` make it changed
 * code.
 */
export function createIdleAgent(
  program: Program,
  change: { readonly instructions?: string } = {},
): Agent<unknown> {
  requireOptions('idleAgentOf', someProgram, program, 'the program')
  return createAgent(
    { ...program, ...change },
    {
      world: createEmptyWorld(),
      ledger: mortalLedger(memoryLedger()),
      attempts: new Map(),
    },
  )
}

function createEmptyWorld(): World {
  return { effects: new Map(), keys: new Set(), early: [] }
}
