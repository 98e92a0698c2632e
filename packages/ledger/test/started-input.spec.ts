import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { type RunId, type RuntimeEvent } from '@tallystick/core'
import { computeDigest, type JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { forgeRun } from './support/forged-ledger.ts'
import { recorded, verified } from './support/recorded.ts'

async function eventsOf(path: string, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const ledger = sqliteLedger(path, { readOnly: true })
  const events = await Array.fromAsync(ledger.read(runId))
  await ledger.close()
  return events
}

/** Writes the digest anew that the start of a call carries; without one, leaves the field out. */
function forgeStart(path: string, runId: RunId, inputDigest?: string): void {
  forgeRun(path, runId, (event) => {
    if (event.type !== 'tool_started') return event
    const { inputDigest: _recorded, ...body } = event.body
    return { ...event, body: inputDigest === undefined ? body : { ...body, inputDigest } }
  })
}

describe('the start of a call', () => {
  it('carries the digest of the input that was asked for', async () => {
    const { path, runId } = await recorded()
    const events = await eventsOf(path, runId)
    const inputs = new Map<string, JsonObject>()
    for (const event of events)
      if (event.type === 'tool_request_ready') inputs.set(event.toolCallId, event.input)
    const starts = events.filter((event) => event.type === 'tool_started')
    expect(starts.length).toBeGreaterThan(0)
    expect(starts.map((event) => event.inputDigest)).toEqual(
      starts.map((event) => computeDigest(inputs.get(event.toolCallId) ?? {})),
    )
  })

  it('with another digest is found by verify, though every hash holds', async () => {
    const { path, runId } = await recorded()
    const { seq } = (await eventsOf(path, runId)).find(({ type }) => type === 'tool_started')!
    forgeStart(path, runId, computeDigest({ amount: 1_000_000 }))
    expect(await verified(path, runId)).toMatchObject({ ok: false, broken: { seq, what: 'law 13' } })
  })

  it('without a digest, as older releases wrote it, is sound', async () => {
    const { path, runId } = await recorded()
    forgeStart(path, runId)
    expect(await verified(path, runId)).toMatchObject({ ok: true })
  })
})
