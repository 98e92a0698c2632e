import { type Ledger, memoryLedger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { foldTo, importEvents, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { upcast, upcasters, type Upcasters } from '../src/format/body.ts'
import { withRaw } from './support/raw-database.ts'
import { linesOfLedger } from './support/exported.ts'
import { temporaryFile } from './support/temporary-folder.ts'

// This test makes up what came before the first version of a type: version -1 said `words`, version
// 0 said `text`, and version 1 is today's.
const madeUp: Upcasters = {
  input_received: {
    [-1]: ({ words, ...body }) => ({ ...body, text: (words as string[]).join(' ') }),
    0: ({ text, ...body }) => ({
      ...body,
      message: { role: 'user', parts: [{ type: 'text', text: text ?? '' }] },
    }),
  },
}

beforeAll(() => {
  Object.assign(upcasters, madeUp)
  return () => Reflect.deleteProperty(upcasters, 'input_received')
})

const runId: RunId = sampleRunId(1)

/** A run whose input was recorded in an older version. */
function olderRun(v: -1 | 0): readonly RuntimeEvent[] {
  const { run_started: start, input_received: input } = sampleFacts(runId)
  const [first, second] = stampFacts(runId, [start, input]) as [RuntimeEvent, RuntimeEvent]
  const { message: _message, ...rest } = second as RuntimeEvent & { message: unknown }
  const said = v === 0 ? { text: 'Hello there' } : { words: ['Hello', 'there'] }
  return [first, { ...rest, ...said, v, kept: [1] } as never]
}

async function filled(ledger: Ledger, events: readonly RuntimeEvent[]): Promise<Ledger> {
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
  return ledger
}

describe('an event of an older version', () => {
  const today = { v: 1, message: sampleMessage('Hello there'), kept: [1] }

  it('goes through every upcaster of its type, and keeps its envelope and unknown fields', () => {
    for (const v of [-1, 0] as const) {
      const older = olderRun(v)[1] as RuntimeEvent
      const { at, seq, epoch, turn } = older
      const event = upcast(older)
      expect(event).toMatchObject({ ...today, runId, at, seq, epoch, turn, type: 'input_received' })
      expect(event).not.toHaveProperty('words')
      expect(event).not.toHaveProperty('text')
    }
  })

  it('is left alone in the newest version, an unknown one, or as an unknown type', () => {
    const [start, older] = olderRun(0) as [RuntimeEvent, RuntimeEvent]
    const newest = upcast(older)
    expect(upcast(newest)).toBe(newest)
    expect(upcast(start)).toBe(start)
    for (const type of ['from_the_future', '__proto__', 'constructor']) {
      const unknown = { ...older, type } as never
      expect(upcast(unknown)).toBe(unknown)
    }
    const future = { ...newest, v: 9 } as RuntimeEvent
    expect(upcast(future)).toBe(future)
  })

  it('is read, folded and verified in the newest, while its bytes stay as they were', async () => {
    for (const v of [-1, 0] as const) {
      const path = temporaryFile()
      const file = await filled(sqliteLedger(path), olderRun(v))
      const events = await Array.fromAsync(file.read(runId))
      expect(events[1]).toMatchObject(today)
      const state = await foldTo(file, runId)
      expect(readMessages(state.history)).toEqual([today.message])
      expect(state).toEqual(events.reduce<ReturnType<typeof evolve> | undefined>(evolve, undefined))
      expect(await verifyRun(file, runId)).toEqual({ scope: 'run', runId, ok: true, events: 2 })
      await file.close()
      const [row] = withRaw(path, (database) =>
        database.prepare<[], { v: number; body: string }>('select v, body from event where seq = 2').all(),
      )
      expect(row?.v).toBe(v)
      expect(row?.body).toContain(v === 0 ? '"text":"Hello there"' : '"words":["Hello","there"]')
    }
  })

  it('is exported and imported as it was recorded', async () => {
    const events = olderRun(0)
    const file = await filled(sqliteLedger(temporaryFile()), events)
    const copy = sqliteLedger(temporaryFile())
    onTestFinished(async () => {
      await file.close()
      await copy.close()
    })
    const lines = await linesOfLedger(file)
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual(events)
    expect(lines).toEqual(await linesOfLedger(await filled(memoryLedger(), events)))
    expect(await importEvents(copy, lines)).toEqual({ runs: 1, events: 2, present: 0 })
    expect(await importEvents(copy, lines)).toEqual({ runs: 1, events: 0, present: 2 })
    expect(await linesOfLedger(copy)).toEqual(lines)
    expect(await foldTo(copy, runId)).toEqual(await foldTo(file, runId))
    // What the newest version would say is another event than what was recorded.
    const upcasted = await filled(memoryLedger(), [
      events[0] as RuntimeEvent,
      upcast(events[1] as RuntimeEvent),
    ])
    await expect(importEvents(copy, await linesOfLedger(upcasted))).rejects.toThrow(
      'differs from the imported one',
    )
  })
})
