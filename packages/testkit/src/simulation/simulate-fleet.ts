import { option, requireOptions } from '@tallystick/core/internal'
import { type Fleet, type FleetEnd, type FleetViolation, playFleet } from './fleet.ts'
import {
  drawPlan,
  type FleetAct,
  fleetActs,
  type FleetFault,
  fleetFaults,
  type FleetPlan,
  shrinkPlan,
} from './fleet-plan.ts'

const { anyFunction, fields, listOf, maybe, numberFrom, oneOf, plainFunction, trueOrFalse } = option

/** A fleet, and the worlds in which it is played. */
export interface FleetOptions extends Fleet {
  /** What people do beside answering what runs ask. Default: all of `fleetActs`. */
  readonly people?: readonly FleetAct[] | undefined
  /** What befalls processes and stores. Default: all of `fleetFaults`. */
  readonly faults?: readonly FleetFault[] | undefined
  /** How many worlds, each of a seed of its own. Default: 100. */
  readonly seeds?: number | undefined
  /** The first seed. Default: 1. */
  readonly from?: number | undefined
  /** Judges of yours, beside those of the laws: called at the end of each world, they return what is wrong in it. */
  readonly judge?:
    | ((end: FleetEnd) => Promise<readonly FleetViolation[]> | readonly FleetViolation[])
    | undefined
  /** Makes a world that fails smaller, as long as it fails in the same way. Default: true. */
  readonly shrinks?: boolean | undefined
  /** Keeps the trace of each world. Default: false; a world that fails is played again with it. */
  readonly traced?: boolean | undefined
  /** Called with each world that holds. */
  readonly onEnd?: ((end: FleetEnd, plan: FleetPlan) => void) | undefined
}

const fleetOptions = fields<FleetOptions>(
  {
    agents: plainFunction,
    tools: maybe(plainFunction),
    start: plainFunction,
    work: maybe(plainFunction),
    prices: maybe(option.anyObject),
    contextOf: maybe(plainFunction),
    changeInput: maybe(plainFunction),
    expects: maybe(plainFunction),
    people: maybe(listOf(oneOf(fleetActs))),
    faults: maybe(listOf(oneOf(fleetFaults))),
    seeds: maybe(numberFrom(1, { whole: true })),
    from: maybe(numberFrom(0, { whole: true })),
    judge: maybe(anyFunction),
    shrinks: maybe(trueOrFalse),
    traced: maybe(trueOrFalse),
    onEnd: maybe(plainFunction),
  },
  { seed: 'from', inputs: 'start', acts: 'people' },
)

/** Thrown for a world in which a law does not hold. */
export class FleetError extends Error {
  readonly seed: number
  /** The smallest plan found that breaks the same law. */
  readonly plan: FleetPlan
  readonly violations: readonly FleetViolation[]
  /** What happened in the world of that plan, one line each. */
  readonly trace: readonly string[]

  constructor(seed: number, plan: FleetPlan, { violations, trace }: Pick<FleetEnd, 'violations' | 'trace'>) {
    super(
      [
        `Seed ${seed}: ${violations.map(({ law, what }) => (law === 0 ? what : `law ${law} is broken: ${what}`)).join('\n')}`,
        'The smallest world found in which it is:',
        ...trace.slice(-linesShown),
        `The plan of that world: ${JSON.stringify(plan)}`,
        `Again with simulateFleet({ …, from: ${seed}, seeds: 1 }).`,
      ].join('\n'),
    )
    this.name = 'FleetError'
    this.seed = seed
    this.plan = plan
    this.violations = violations
    this.trace = trace
  }
}

/** The last lines of a trace, which an error shows. */
const linesShown = 60

/**
 * Simulates worlds in which processes drive the runs of your agents over one or two stores, and people answer them, while
 * processes die, stand still and are cut off, and stores lose answers and power. In each world every law has to hold, every
 * run has to end, and every command has to be answered. One seed is one world, to the byte.
 *
 * Models and tools must wait for nothing but `site.sleep` and promises that follow from it: time passes in the world only.
 * Throws a `FleetError` for the first world in which a law does not hold, made as small as it can be.
 */
export async function simulateFleet(
  options: FleetOptions,
): Promise<{ readonly seeds: number; readonly steps: number }> {
  requireOptions('simulateFleet', fleetOptions, options)
  const { people = fleetActs, faults = fleetFaults, seeds = 100, from = 1, judge, traced = false } = options
  const play = async (plan: FleetPlan, isTraced: boolean): Promise<FleetEnd> => {
    const end = await playFleet(options, plan, { traced: isTraced })
    if (judge === undefined || end.violations.length > 0) return end
    return { ...end, violations: await judge(end) }
  }
  let steps = 0
  for (let seed = from; seed < from + seeds; seed++) {
    const plan = drawPlan(seed, { acts: people, faults })
    const end = await play(plan, traced)
    steps += end.steps
    if (end.violations.length > 0) {
      const { law } = end.violations[0] as FleetViolation
      const shrink = options.shrinks === false ? () => Promise.resolve(plan) : shrinkPlan
      const smallest = await shrink(plan, async (smaller) =>
        (await play(smaller, false)).violations.some((violation) => violation.law === law),
      )
      throw new FleetError(seed, smallest, await play(smallest, true))
    }
    options.onEnd?.(end, plan)
  }
  return { seeds, steps }
}
