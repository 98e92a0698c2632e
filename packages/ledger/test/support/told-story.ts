import type { Ledger } from '@tallystick/core'
import { verifyLedger } from '@tallystick/ledger'
import { sampleRunId } from '@tallystick/testkit'
import { expect } from 'vitest'
import { expectTold, refreshed } from './compare-projections.ts'
import { GrownLedger, runsOf, type Story } from './grown-ledger.ts'

/** Lets ledgers over one store grow as a story says, and expects projections that tell what the events do. */
export async function expectToldStory(story: Story, open: (readOnly: boolean) => Ledger): Promise<void> {
  const ledgers = [open(false), open(false)] as const
  const grown = new GrownLedger(await runsOf(story))
  // Every reader finds a schema that is made.
  await ledgers[0].head(sampleRunId(1))
  const reader = open(true)
  for (const step of story.steps) {
    if (step.do === 'grow') await grown.grow(ledgers[step.by], step.run, step.events)
    else if (step.do === 'refresh') await refreshed(ledgers[step.by])
    else await expectTold(reader, grown.runs, false)
  }
  await expectTold(reader, grown.runs, false)
  await refreshed(ledgers[0])
  for (const ledger of [ledgers[0], reader]) await expectTold(ledger, grown.runs, true)
  const verdicts = await Array.fromAsync(verifyLedger(reader))
  expect(verdicts.filter(({ ok, differs }) => !ok || differs)).toEqual([])
  for (const ledger of [...ledgers, reader]) await ledger.close()
}
