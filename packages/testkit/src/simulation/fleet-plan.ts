import { seededRandom } from '../seeded-random.ts'

/** What can befall the processes and stores of a fleet. */
export type FleetFault =
  | 'crash'
  | 'crash_at_append'
  | 'stop'
  | 'cut_off'
  | 'lost_answers'
  | 'late_append'
  | 'slow_store'
  | 'power_loss'
  | 'drain'
  | 'clock_jump'
  | 'duplicate_wakes'

export const fleetFaults: readonly FleetFault[] = [
  ...(['crash', 'crash_at_append', 'stop', 'cut_off', 'lost_answers', 'late_append', 'slow_store'] as const),
  ...(['power_loss', 'drain', 'clock_jump', 'duplicate_wakes'] as const),
]

/** What people do to runs, beside answering what they ask. */
export type FleetAct =
  | 'cancel'
  | 'steer'
  | 'queue'
  | 'fork'
  | 'branch'
  | 'raise'
  | 'resume'
  | 'redact'
  | 'edit'
  | 'feedback'
  | 'mistake'

export const fleetActs: readonly FleetAct[] = [
  ...(['cancel', 'steer', 'queue', 'fork', 'branch', 'raise', 'resume', 'redact'] as const),
  ...(['edit', 'feedback', 'mistake'] as const),
]

/** A run that is to begin. */
export interface PlannedStart {
  readonly at: number
  /** Names it within the plan: what it does is drawn from that. */
  readonly ordinal: number
  readonly store: number
  /** A number of a session of its store: runs of one share a history. */
  readonly session: number | undefined
  /** `enqueue`: the desk records it, and a worker drives it. `run`: a process starts it and drives it itself. */
  readonly via: 'enqueue' | 'run'
  readonly process: number
}

/** Something that a person does to a run that has begun by then. */
export interface PlannedAct {
  readonly at: number
  readonly act: FleetAct
  /** The ordinal of the start whose run it is about. */
  readonly start: number
  readonly process: number
}

/** Something that befalls a process or a store. */
export interface PlannedFault {
  readonly at: number
  readonly fault: FleetFault
  readonly process: number
  readonly store: number
  readonly forMs: number
  /** `crash_at_append`: at which append from then on. */
  readonly append: number
  /** `crash_at_append`: the append is carried out. */
  readonly stored: boolean
  /** `power_loss`: how many changes since the last barrier are left. */
  readonly kept: number
}

/** All that is to happen in a world; times are in milliseconds from its beginning. Plain JSON. */
export interface FleetPlan {
  readonly seed: number
  /** All delays are as short as they can be. */
  readonly isCalm: boolean
  readonly stores: number
  readonly processes: number
  readonly starts: readonly PlannedStart[]
  readonly acts: readonly PlannedAct[]
  readonly faults: readonly PlannedFault[]
}

/** Faults and starts come within this time, in milliseconds. */
const troubledMs = 60_000

/** Draws a plan. */
export function drawPlan(
  seed: number,
  { acts, faults }: { readonly acts: readonly FleetAct[]; readonly faults: readonly FleetFault[] },
): FleetPlan {
  const random = seededRandom(seed)
  const below = (end: number): number => Math.floor(random() * end)
  const pick = <T>(among: readonly T[]): T => among[below(among.length)] as T
  const stores = random() < 0.3 ? 2 : 1
  const processes = 1 + below(3)
  const sessions = below(3)
  const starts = Array.from({ length: 1 + below(6) }, (_, ordinal): PlannedStart => {
    const session = sessions > 0 && random() < 0.5 ? below(sessions) : undefined
    return {
      at: random() < 0.5 ? below(2_000) : below(troubledMs / 2),
      ordinal,
      store: session === undefined ? below(stores) : session % stores,
      session,
      via: random() < 0.6 ? 'enqueue' : 'run',
      process: below(processes),
    }
  })
  const someTimes = (most: number): unknown[] => Array.from({ length: below(most + 1) })
  return {
    ...{ seed, isCalm: false, stores, processes, starts },
    acts:
      acts.length === 0
        ? []
        : someTimes(8).map((): PlannedAct => {
            const { at, ordinal } = pick(starts)
            const laterMs = below(random() < 0.5 ? 600 : 8_000)
            return { at: at + laterMs, act: pick(acts), start: ordinal, process: below(processes) }
          }),
    faults:
      faults.length === 0
        ? []
        : someTimes(12).map((): PlannedFault => ({
            // While a run is at work, most of the time.
            at: random() < 0.85 ? pick(starts).at + below(random() < 0.5 ? 600 : 8_000) : below(troubledMs),
            fault: pick(faults),
            process: below(processes),
            store: below(stores),
            // About as long as a lease lasts, or much shorter.
            forMs: random() < 0.5 ? below(1_000) : below(30_000),
            append: 1 + below(12),
            stored: random() < 0.5,
            kept: below(4),
          })),
  }
}

/** A smaller plan that still fails. `fails` plays one. */
export async function shrinkPlan(
  plan: FleetPlan,
  fails: (plan: FleetPlan) => Promise<boolean>,
): Promise<FleetPlan> {
  let smallest = plan
  for (;;) {
    const before = smallest
    for (const smaller of listSmallerPlans(before))
      if (await fails(smaller)) {
        smallest = smaller
        break
      }
    if (smallest === before) return smallest
  }
}

/** Plans with less in them: the greatest steps first. */
function* listSmallerPlans(plan: FleetPlan): Generator<FleetPlan> {
  if (!plan.isCalm) yield { ...plan, isCalm: true }
  for (const name of ['faults', 'acts', 'starts'] as const) {
    const all: readonly unknown[] = plan[name]
    for (let size = all.length; size >= 1; size = Math.floor(size / 2)) {
      for (let from = 0; from < all.length; from += size) {
        if (name !== 'starts' || size < all.length) yield { ...plan, [name]: all.toSpliced(from, size) }
      }
    }
  }
  if (plan.stores > 1 && plan.starts.every(({ store }) => store === 0)) yield { ...plan, stores: 1 }
  if (plan.processes > 1) yield { ...plan, processes: plan.processes - 1 }
}
