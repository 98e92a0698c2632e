import {
  LedgerDamagedError,
  LedgerUnavailableError,
  memoryLedger,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { eachEvent } from '../src/read/checked-events.ts'
import { recordRun } from './support/record-run.ts'
import { tamper } from './support/raw-database.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/** What is handed on of a read, and the error that ends it. */
async function handedOn(
  events: AsyncIterable<RuntimeEvent>,
  onEvent: (event: RuntimeEvent) => void = () => {},
): Promise<{ readonly events: readonly RuntimeEvent[]; readonly error?: unknown }> {
  const got: RuntimeEvent[] = []
  try {
    await eachEvent(events, (event) => {
      got.push(event)
      onEvent(event)
    })
    return { events: got }
  } catch (error) {
    return { events: got, error }
  }
}

/** What comes of the same read one by one. */
async function oneByOne(events: AsyncIterable<RuntimeEvent>): ReturnType<typeof handedOn> {
  const got: RuntimeEvent[] = []
  try {
    for await (const event of events) got.push(event)
    return { events: got }
  } catch (error) {
    return { events: got, error }
  }
}

async function recorded(): Promise<{
  readonly ledger: Ledger
  readonly path: string
  readonly runId: RunId
  readonly lastSeq: number
}> {
  const path = temporaryFile()
  const ledger = sqliteLedger(path)
  const runId = await recordRun(ledger)
  return { ledger, path, runId, lastSeq: (await ledger.head(runId))?.seq ?? 0 }
}

describe('the events of a read', () => {
  it('are the same row by row and one by one, wherever the range begins and ends', async () => {
    const { ledger, runId, lastSeq } = await recorded()
    for (let fromSeq = 1; fromSeq <= lastSeq + 1; fromSeq++) {
      for (const toSeq of [fromSeq - 1, fromSeq, fromSeq + 2, lastSeq]) {
        const range = { fromSeq, toSeq }
        const { events, error } = await handedOn(ledger.read(runId, range))
        expect({ events, error }).toEqual({
          ...(await oneByOne(ledger.read(runId, range))),
          error: undefined,
        })
        expect(events).toHaveLength(Math.max(0, Math.min(toSeq, lastSeq) - fromSeq + 1))
      }
    }
    await ledger.close()
  })

  it('are handed on up to the row that has changed, or that is missing', async () => {
    for (const change of ['update event set turn = turn + 1', 'delete from event']) {
      const { ledger, path, runId, lastSeq } = await recorded()
      await ledger.close()
      tamper(path, (database) => {
        database.prepare(`${change} where seq = (select max(seq) from event where seq < ?)`).run(lastSeq)
      })
      const opened = sqliteLedger(path, { readOnly: true })
      const { events, error } = await handedOn(opened.read(runId))
      expect(error).toBeInstanceOf(LedgerDamagedError)
      expect(events.length).toBeGreaterThan(5)
      const alone = await oneByOne(opened.read(runId))
      expect({ events, message: String(error) }).toEqual({
        events: alone.events,
        message: String(alone.error),
      })
      await opened.close()
    }
  })

  it('are no more after the ledger was closed', async () => {
    const { ledger, runId, lastSeq } = await recorded()
    let closed: Promise<void> | undefined
    const { events, error } = await handedOn(ledger.read(runId), () => void (closed ??= ledger.close()))
    expect(error).toBeInstanceOf(LedgerUnavailableError)
    expect(events.length).toBeLessThan(lastSeq)
    await closed
  })

  it('go no further than an event that is refused', async () => {
    const { ledger, runId } = await recorded()
    const refuse = ({ seq }: RuntimeEvent): void => {
      if (seq === 3) throw new Error('No.')
    }
    const { events, error } = await handedOn(ledger.read(runId), refuse)
    expect([events.length, error]).toEqual([3, new Error('No.')])
    await ledger.close()
  })

  it('come one by one from a ledger that lends no rows, and from one that changes what it reads', async () => {
    const ledger = memoryLedger()
    const runId = await recordRun(ledger)
    const { events } = await handedOn(ledger.read(runId))
    expect(events).toEqual(await Array.fromAsync(ledger.read(runId)))
    async function* fewer(): AsyncGenerator<RuntimeEvent> {
      for await (const event of ledger.read(runId)) if (event.seq > 2) yield event
    }
    expect(await handedOn(fewer())).toEqual({ events: events.slice(2) })
  })
})
