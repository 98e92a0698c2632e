import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { ImportWriter } from '../src/import-events.ts'

const [one, two] = [sampleRunId(1), sampleRunId(2)]
const fact = sampleFacts(one).cancel_requested

/** A writer of a ledger that only notes what is asked of it. */
function noting({ refuses = false } = {}) {
  const noted: string[] = []
  const append: Ledger['append'] = async (runId, { expectedSeq, epoch }, events, { durability }) => {
    noted.push(`${runId === one ? 'one' : 'two'} ${expectedSeq}+${events.length} ${epoch} ${durability}`)
    if (refuses) throw new Error('refused')
    return { seq: expectedSeq + events.length, epoch }
  }
  const writer = new ImportWriter({ append } as unknown as Ledger)
  const received = (): readonly string[] => noted.splice(0)
  return { writer, received }
}

function eventsOf(runId: RunId, from: number, count: number, epoch = 1): readonly RuntimeEvent[] {
  const facts = Array.from({ length: count }, () => fact)
  return stampFacts(runId, facts, { afterSeq: from - 1, epoch })
}

/** Adds events, each with a line of so many characters. */
async function add(writer: ImportWriter, events: readonly RuntimeEvent[], length = 1): Promise<void> {
  for (const event of events) await writer.add(event, length)
}

describe('imported events', () => {
  it('are appended in groups of 256, or of a mebibyte of lines, and the last is made durable', async () => {
    const { writer, received } = noting()
    await add(writer, eventsOf(one, 1, 255))
    expect(received()).toEqual([])
    await add(writer, eventsOf(one, 256, 2))
    expect(received()).toEqual(['one 0+256 1 lazy'])
    await add(writer, eventsOf(one, 258, 1), 1024 * 1024 - 2)
    expect(received()).toEqual([])
    await add(writer, eventsOf(one, 259, 2))
    expect(received()).toEqual(['one 256+3 1 lazy'])
    await writer.finish()
    expect(received()).toEqual(['one 259+1 1 barrier'])
  })

  it('are one group for each run and epoch', async () => {
    const { writer, received } = noting()
    await add(writer, [...eventsOf(one, 1, 2), ...eventsOf(one, 3, 1, 2), ...eventsOf(two, 1, 1, 2)])
    expect(received()).toEqual(['one 0+2 1 lazy', 'one 2+1 2 lazy'])
    await writer.flush()
    expect(received()).toEqual(['two 0+1 2 lazy'])
    await writer.flush()
    expect(received()).toEqual([])
    await writer.finish()
    expect(received()).toEqual(['two 1+0 2 barrier'])
  })

  it('are durable after 4096 of them, and after 16 MiB of lines, each counted anew', async () => {
    const { writer, received } = noting()
    const groups = (count: number): readonly string[] => Array.from({ length: count }, () => 'lazy')
    const levels = (): readonly string[] => received().map((line) => line.split(' ')[3] ?? '')
    await add(writer, eventsOf(one, 1, 4096))
    expect(levels()).toEqual([...groups(15), 'barrier'])
    await add(writer, eventsOf(one, 4097, 16), 1024 * 1024)
    expect(levels()).toEqual([...groups(15), 'barrier'])
    await add(writer, eventsOf(one, 4113, 4096))
    expect(levels()).toEqual([...groups(15), 'barrier'])
    await writer.finish()
    expect(received()).toEqual([])
  })

  it('append nothing if there are no events', async () => {
    const { writer, received } = noting()
    await writer.flush()
    await writer.finish()
    expect(received()).toEqual([])
  })

  it('that a ledger refuses are offered once', async () => {
    const { writer, received } = noting({ refuses: true })
    await add(writer, eventsOf(one, 1, 3))
    await expect(writer.flush()).rejects.toThrow('refused')
    await writer.finish()
    expect(received()).toEqual(['one 0+3 1 lazy'])
  })
})
