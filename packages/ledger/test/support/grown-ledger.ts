import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { buildForkedEvents } from '@tallystick/core/internal'
import { sampleRunId } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { playProgram } from '../../../../scripts/testing/programs/play-program.ts'
import type { Program } from '../../../../scripts/testing/programs/program.ts'
import { randomProgram } from '../../../../scripts/testing/programs/random-program.ts'

const hourMs = 60 * 60 * 1000

/** A run that is like one that was played: of a session, later, or a fork that goes its own way from an event on. */
export interface Variant {
  readonly of: number
  readonly hours: number
  readonly sessionId: string | undefined
  readonly sharedSeq: number | undefined
}

/** Something that happens to a ledger which two have open. */
export type Step =
  | { readonly do: 'grow'; readonly run: number; readonly events: number; readonly by: 0 | 1 }
  | { readonly do: 'refresh'; readonly by: 0 | 1 }
  | { readonly do: 'look' }

/** How a ledger grows, and when it is asked. */
export interface Story {
  readonly programs: readonly Program[]
  readonly variants: readonly Variant[]
  readonly steps: readonly Step[]
}

const by = fc.constantFrom(0 as const, 1 as const)

/** Any story: runs grow a few events at a time, in any order, and are asked about in between. */
export const story: fc.Arbitrary<Story> = fc.record({
  programs: fc.array(randomProgram, { minLength: 1, maxLength: 2 }),
  variants: fc.array(
    fc.record({
      of: fc.nat(),
      hours: fc.nat(60),
      sessionId: fc.constantFrom(undefined, 'ann', 'bob', '"quoted"'),
      sharedSeq: fc.option(fc.nat(40), { nil: undefined }),
    }),
    { maxLength: 4 },
  ),
  steps: fc.array(
    fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          do: fc.constant('grow' as const),
          run: fc.nat(),
          events: fc.integer({ min: 1, max: 30 }),
          by,
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('refresh' as const), by }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('look' as const) }) },
    ),
    { maxLength: 20 },
  ),
})

/** The runs of a story, each with all the events that it may come to. */
export async function runsOf({ programs, variants }: Story): Promise<readonly (readonly RuntimeEvent[])[]> {
  const played: (readonly RuntimeEvent[])[] = []
  for (const program of programs) {
    const { events, others } = await playProgram(program)
    for (const run of [events, ...others]) if (isNew(played, run)) played.push(run)
  }
  const places = new Map<string, number>()
  const varied = variants.map((variant, index) => {
    const { sessionId = '' } = variant
    places.set(sessionId, (places.get(sessionId) ?? 0) + 1)
    const events = played[variant.of % played.length] as readonly RuntimeEvent[]
    return variedRun(events, variant, {
      runId: sampleRunId(index + 1),
      sessionPlace: places.get(sessionId) as number,
    })
  })
  return [...played, ...varied]
}

/** Two programs that are alike play runs of the same ids. */
function isNew(played: readonly (readonly RuntimeEvent[])[], [first]: readonly RuntimeEvent[]): boolean {
  return played.every(([other]) => other?.runId !== first?.runId)
}

function variedRun(
  events: readonly RuntimeEvent[],
  { hours, sessionId, sharedSeq }: Variant,
  { runId, sessionPlace }: { readonly runId: RunId; readonly sessionPlace: number },
): readonly RuntimeEvent[] {
  // Its own events are those of the run that it forks, writes included, so those need no approval.
  return buildForkedEvents(events, { runId, writes: 'run' }).map((moved) => {
    const event = { ...moved, at: moved.at + hours * hourMs }
    if (event.type !== 'run_started') return event
    const { parent, ...started } = event
    return {
      ...started,
      ...(sharedSeq !== undefined &&
        parent && { parent: { ...parent, seq: Math.min(sharedSeq, parent.seq) } }),
      ...(sessionId !== undefined && { sessionId, sessionPlace }),
    }
  })
}

/** A ledger that grows by events that are known. */
export class GrownLedger {
  readonly #planned: readonly (readonly RuntimeEvent[])[]
  /** How many events of each run are stored, in the order in which the runs were made. */
  readonly #grown = new Map<number, number>()

  constructor(planned: readonly (readonly RuntimeEvent[])[]) {
    this.#planned = planned
  }

  /** The stored events, run by run, the newest run first. */
  get runs(): readonly (readonly RuntimeEvent[])[] {
    return [...this.#grown].toReversed().map(([run, events]) => this.#planned[run]!.slice(0, events))
  }

  /** Appends the next events of a run. */
  async grow(ledger: Ledger, run: number, count: number): Promise<void> {
    const index = run % this.#planned.length
    const status = this.#grown.get(index) ?? 0
    for (const event of this.#planned[index]!.slice(status, status + count)) {
      const { runId, seq, epoch } = event
      while (((await ledger.head(runId))?.epoch ?? 1) < epoch) await ledger.acquire(runId)
      await ledger.append(runId, { expectedSeq: seq - 1, epoch }, [event], { durability: 'lazy' })
      this.#grown.set(index, seq)
    }
  }
}
