import { type Agent, type Ledger, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import {
  manualClock,
  mortalLedger,
  seededRandom,
  simulate,
  type Simulated,
  type Simulation,
  volatileLedger,
} from '@tallystick/testkit'
import { tickingClock } from '../../../packages/testkit/src/doubles/clock.ts'
import { isVolatile } from '../../../packages/testkit/src/doubles/ledger.ts'
import { decideAs } from '../../../packages/testkit/src/properties/decide-as.ts'
import { createAgent, type Effects } from './agents.ts'
import type { Program } from './program.ts'

/** How a program went, and what its tools saw of the world. */
export type Played = Simulated & {
  readonly world: Effects
  readonly ledger: Ledger
  /** The events that were acknowledged and were lost with the power of the machine. */
  readonly lost: readonly RuntimeEvent[]
}

/** US dollars per million tokens. */
const prices = {
  'scripted-1': { inputUsd: 3, outputUsd: 15, source: 'test' },
  'scripted-2': { inputUsd: 1, outputUsd: 5, source: 'test' },
}

/** Plays a program to its end. On a ledger that is given, and cannot lose power, only its processes die. */
export async function playProgram(
  program: Program,
  start: Pick<Simulation, 'resume' | 'outside'> & { ledger?: Ledger; world?: Effects } = {},
): Promise<Played> {
  const { crashes, cancelAtSeq, drainAtSeq, subject, inputs, decisions, randomness } = program
  const world = start.world ?? createEmptyEffects()
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
  return createAgent(
    { ...program, ...change },
    {
      world: createEmptyEffects(),
      ledger: mortalLedger(memoryLedger()),
      attempts: new Map(),
    },
  )
}

function createEmptyEffects(): Effects {
  return { effects: new Map(), keys: new Set(), early: [] }
}
