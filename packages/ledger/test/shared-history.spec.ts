import { LedgerDamagedError, memoryLedger } from '@tallystick/core'
import { type JsonObject } from '@tallystick/core/vocabulary'
import { exportEvents, importEvents } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { eventsOf } from './support/removal-bed.ts'
import { chat } from './support/session-bed.ts'

const isCarried = (line: string): boolean => line.includes('"type":"history_carried"')

const notHeld = 'which no line before it holds, or the ledger holds no more.'
const notNamed = 'it does not say which event it shares messages with.'

function changed(line: string, change: (event: JsonObject) => JsonObject): string {
  return JSON.stringify(change(JSON.parse(line) as JsonObject))
}

/** The export of a session of three runs. */
async function exported(): Promise<readonly string[]> {
  const ledger = memoryLedger()
  await chat(ledger, 3)
  return await Array.fromAsync(exportEvents(ledger))
}

describe('a line of an export that shares what a run begins with', () => {
  it('says which event before it holds the rest, and holds what the run before it said', async () => {
    const [second, third] = (await exported()).filter(isCarried).map((line) => JSON.parse(line) as JsonObject)
    expect(second).not.toHaveProperty('shared')
    expect(third).toMatchObject({ shared: { runId: second?.['runId'], seq: 2, messages: 4 } })
    expect(third?.['messages']).toHaveLength(4)
  })

  it('takes in nothing of a run that no line before it holds, though the ledger does', async () => {
    const lines = await exported()
    const ledger = memoryLedger()
    const [, private_] = await chat(ledger, 2, { sessionId: 'somebody else' })
    const forged = lines.map((line) =>
      line.includes('"shared"')
        ? changed(line, (event) => ({ ...event, shared: { runId: private_ as string, seq: 2, messages: 4 } }))
        : line,
    )
    const place = forged.findIndex((line) => line.includes('"shared"')) + 1
    await expect(importEvents(ledger, forged)).rejects.toThrow(
      new RegExp(
        `^Line ${place} cannot be imported: it begins with 4 messages of event 2 of run ${private_}`,
      ),
    )
  })

  it.each<{ readonly what: string; readonly shared: JsonObject[string]; readonly says: string }>([
    { what: 'more messages than there are', shared: { seq: 2, messages: 5 }, says: notHeld },
    { what: 'another event', shared: { seq: 3, messages: 4 }, says: notHeld },
    { what: 'fewer messages than none', shared: { seq: 2, messages: -1 }, says: notNamed },
    { what: 'half a message', shared: { seq: 2, messages: 0.5 }, says: notNamed },
    { what: 'no number of messages', shared: { seq: 2 }, says: notNamed },
    { what: 'no number of an event', shared: { seq: 'x', messages: 4 }, says: notNamed },
    { what: 'nothing', shared: null, says: notNamed },
  ])('is refused at its line where it names $what', async ({ shared, says }) => {
    const lines = await exported()
    const [{ runId }] = lines
      .filter(isCarried)
      .map((line) => JSON.parse(line) as { readonly runId: string }) as [{ readonly runId: string }]
    const damaged = lines.map((line) =>
      line.includes('"shared"')
        ? changed(line, (event) => ({
            ...event,
            shared: shared === null ? null : { runId, ...(shared as object) },
          }))
        : line,
    )
    const ledger = memoryLedger()
    const error: unknown = await importEvents(ledger, damaged).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(LedgerDamagedError)
    const place = damaged.findIndex((line) => line.includes('"shared"')) + 1
    expect((error as Error).message).toContain(`Line ${place} cannot be imported: `)
    expect((error as Error).message).toContain(says)
  })

  it('is found out by law 7 where it names fewer messages than the model was shown', async () => {
    const lines = (await exported()).map((line) =>
      line.includes('"shared"')
        ? changed(line, (event) => ({
            ...event,
            shared: { ...(event['shared'] as JsonObject), messages: 0 },
          }))
        : line,
    )
    const ledger = memoryLedger()
    await expect(importEvents(ledger, lines)).rejects.toThrow('law 7')
    expect((await Array.fromAsync(ledger.runs())).length).toBe(3)
    for await (const { runId } of ledger.runs())
      expect((await eventsOf(ledger, runId)).length).toBeGreaterThan(0)
  })
})
