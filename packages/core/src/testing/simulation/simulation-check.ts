import { someLedger, somePrices } from '../../runtime/runtime-options.ts'
import {
  anyFunction,
  anyObject,
  anyText,
  fields,
  filledText,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  type OptionCheck,
  plainFunction,
  requireOptions,
  trueOrFalse,
} from '../../values/option.ts'
import { steeredClock } from '../doubles/manual-clock.ts'
import { crashPoint } from './faults.ts'
import type { SimulatedDecision, Simulation } from './simulation-plan.ts'

const seq = numberFrom(1, { whole: true })

const simulation = fields<Simulation>(
  {
    ledger: someLedger,
    clock: steeredClock,
    outside: maybe(anyFunction),
    random: plainFunction,
    agentOf: plainFunction,
    input: anyText,
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

/** Refuses what would not happen to a run: a test of a crash that never comes passes. */
export function requireSimulation(given: unknown): void {
  requireOptions('simulate', simulation, given)
}

interface AnyDecision {
  readonly approve: boolean
  readonly afterMs?: number | undefined
  readonly input?: unknown
  readonly reason?: string | undefined
}

const approval: OptionCheck = fields<AnyDecision>({
  approve: trueOrFalse,
  afterMs: maybe(numberFrom(0)),
  input: maybe(anyObject),
  reason: maybe(anyText),
})

/** Refuses an answer to an approval that neither approves nor says why not. */
export function requireDecision(given: SimulatedDecision): void {
  requireOptions('simulate', approval, given, 'what decide returned')
  if (!given.approve) requireOptions('simulate', anyText, given.reason, 'the reason that decide returned')
}
