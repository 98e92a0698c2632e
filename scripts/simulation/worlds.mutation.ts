import { type FleetEnd, type FleetViolation, simulateFleet } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { createFleet } from './fleet.ts'
import { findReplayFault } from './judge.ts'

async function judge({ stores }: FleetEnd): Promise<readonly FleetViolation[]> {
  const found: FleetViolation[] = []
  for (const { ledger, runs } of stores) {
    for (const events of runs) {
      const replayed = await findReplayFault(ledger, events)
      if (replayed && replayed !== 'removed') found.push(replayed)
    }
  }
  return found
}

// The worlds that `stryker.sample.config.ts` asks about each mutant: a few of those that `pnpm simulate` plays.
it.each(Array.from({ length: 60 }, (_, index) => index + 1))(
  'every law holds in the world of seed %d',
  async (seed) => {
    const played = simulateFleet({ ...createFleet(), judge, from: seed, seeds: 1, shrinks: false })
    await expect(played).resolves.toMatchObject({ seeds: 1 })
  },
)
