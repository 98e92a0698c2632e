import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { hostileTexts, sampleRunId } from '@tallystick/testkit'
import { exportEvents, foldTo, readRunSummaries } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { BadRunIdsError, formatRunId, quoteId, RunIdSieve, listUntilBadIds } from '../src/format/event-row.ts'
import { tamper } from './support/raw-database.ts'
import { forgeRun, type ForgedEvent } from './support/forged-ledger.ts'
import { allVerified, recorded } from './support/recorded.ts'

/** Each once. A text that SQLite would store as another one cannot be planted. */
const plantable = [...new Set(hostileTexts.map(({ text }) => text))].filter(
  (text) => text.isWellFormed() && !text.includes('\0'),
)

/** The items up to the error that ends them. */
async function untilError<T>(items: AsyncIterable<T>): Promise<{ items: readonly T[]; error: unknown }> {
  const found: T[] = []
  try {
    for await (const item of items) found.push(item)
    return { items: found, error: undefined }
  } catch (error) {
    return { items: found, error }
  }
}

/** A file with two runs, and beside them rows of runs under every hostile text. */
async function planted(): Promise<{ readonly path: string; readonly runIds: readonly RunId[] }> {
  const { path, runId, otherId } = await recorded()
  tamper(path, (database) => {
    const plant = database.prepare(
      `insert into run (run_id, pos, head_seq, head_hash, epoch, seal) select ?, ?, head_seq, head_hash, epoch, seal
        from run where run_id = ?`,
    )
    for (const [index, text] of plantable.entries()) plant.run(text, 10_000 + index, runId)
  })
  return { path, runIds: [otherId, runId] }
}

describe('an id in a message', () => {
  it('is JSON of printable ASCII, cut after eighty characters', () => {
    expect(quoteId('a "b" \\')).toBe(String.raw`"a \"b\" \\"`)
    expect(quoteId('é\u0007\n🧾\u007f')).toBe(String.raw`"\u00e9\u0007\n\ud83e\uddfe\u007f"`)
    expect(quoteId('x'.repeat(80))).toBe(`"${'x'.repeat(80)}"`)
    expect(quoteId('x'.repeat(81))).toBe(`"${'x'.repeat(80)}"`)
    expect([quoteId(7), quoteId(null), quoteId(undefined)]).toEqual(['"7"', '"null"', '"undefined"'])
    expect([formatRunId(sampleRunId(1)), formatRunId('a b')]).toEqual([sampleRunId(1), '"a b"'])
  })

  it('is named with twenty others at most, and how many more there are', () => {
    const found = (count: number): readonly string[] =>
      Array.from({ length: count }, (_, index) => `id ${index}`)
    const named = (count: number): string => found(count).map(quoteId).join(', ')
    const message = (count: number): string => new BadRunIdsError(found(count)).message
    expect(message(1)).toContain('under ids that are not run ids: "id 0". The runtime writes no such rows')
    expect(message(20)).toContain(`not run ids: ${named(20)}. The runtime`)
    expect(message(21)).toContain(`not run ids: ${named(20)} and 1 more. The runtime`)
    expect(message(25)).toContain(`not run ids: ${named(20)} and 5 more. The runtime`)
    expect(new BadRunIdsError(found(25)).found).toEqual(found(25))
  })

  it('is left out of a list, which then fails with those that were left out; what else fails a list passes', async () => {
    const sieve = new RunIdSieve()
    const [good, bad] = [sampleRunId(1), 'a b']
    expect([good, bad, good].map((id) => sieve.keeps(id))).toEqual([true, false, true])
    expect(() => sieve.end()).toThrow(new BadRunIdsError([bad]).message)
    expect(new RunIdSieve().end()).toBeUndefined()
    const until = async (end: () => void): Promise<unknown> => {
      const seen: unknown[] = []
      async function* list(): AsyncGenerator<string> {
        yield good
        end()
      }
      return [await listUntilBadIds(list(), (run) => seen.push(run)), seen]
    }
    expect(await until(() => undefined)).toEqual([{}, [good]])
    expect(await until(() => sieve.end())).toEqual([{ error: expect.any(BadRunIdsError) as unknown }, [good]])
    const other = (): never => {
      throw new LedgerDamagedError('another')
    }
    await expect(until(other)).rejects.toThrow('another')
  })
})

describe('a ledger file whose ids were forged, with a chain that verifies', () => {
  it('lists its runs, and never a text that is not a run id, whatever it is', async () => {
    const { path, runIds } = await planted()
    const ledger = sqliteLedger(path, { readOnly: true })
    const listed = await untilError(ledger.runs())
    expect(listed.items.map((run) => run.runId)).toEqual(runIds)
    expect(listed.error).toBeInstanceOf(LedgerDamagedError)
    expect(String(listed.error)).toMatch(/^[ -~]*$/)
    expect((await untilError(ledger.runs({ limit: 1 }))).items).toHaveLength(1)
    expect((await untilError(readRunSummaries(ledger))).items.map((run) => run.runId)).toEqual(runIds)
    const done = await untilError(readRunSummaries(ledger, { statuses: ['done', 'unreadable'] }))
    expect(done.items.map((run) => run.runId)).toEqual(runIds)
    for (const text of plantable) {
      expect(await ledger.head(text as RunId)).toBeUndefined()
      expect((await untilError(ledger.read(text as RunId))).items).toEqual([])
      expect((await untilError(ledger.find({ runId: text as RunId }))).items).toEqual([])
    }
    await ledger.close()
  })

  it('leases no run under such a text', async () => {
    const { path } = await planted()
    tamper(path, (database) => database.exec(`update run set lease_holder = 'me', lease_until = 9e15`))
    const ledger = sqliteLedger(path)
    for (const text of plantable as readonly string[] as RunId[]) {
      expect(await ledger.lease(text)).toBeUndefined()
      expect(await ledger.renew([text], { holder: 'me', forMs: 1_000 })).toEqual([])
    }
    await ledger.close()
  })

  it('is found by verify, which names each such text so that nothing in it can act', async () => {
    const { path, runIds } = await planted()
    const { runs, store } = await allVerified(path)
    expect(runs.filter(({ ok }) => ok).map((run) => run.runId)).toEqual(runIds)
    const broken = runs.flatMap((run) => run.broken ?? [])
    expect(broken).toHaveLength(plantable.length)
    for (const { what, found } of broken) {
      expect(what).toBe('run_id')
      expect(found).toMatch(/^"[ -~]*"$/)
    }
    expect(store).toMatchObject({ ok: false, brokenRuns: plantable.length })
  })

  it('hands out no event under such a text, by whatever it is looked for', async () => {
    const { path, runId, otherId } = await recorded()
    const text = '$(touch tallystick-ran)'
    forgeRun(path, runId, (event) => ({ ...event, runId: text }))
    const ledger = sqliteLedger(path, { readOnly: true })
    const searches = [ledger.find({}), ledger.find({ types: ['run_started'] }), ledger.find({ fromAt: 0 })]
    for (const events of searches) {
      const { items, error } = await untilError(events)
      expect(items.filter((event) => event.runId !== otherId)).toEqual([])
      expect(error).toBeInstanceOf(LedgerDamagedError)
    }
    expect((await untilError(ledger.tail())).items.filter(({ event }) => event.runId !== otherId)).toEqual([])
    await ledger.close()
  })

  it('is still exported, as far as its runs have ids', async () => {
    const { path, runId, otherId } = await recorded()
    forgeRun(path, runId, (event) => ({ ...event, runId: '$(touch tallystick-ran)' }))
    const ledger = sqliteLedger(path, { readOnly: true })
    const { items, error } = await untilError(exportEvents(ledger))
    const exported = items.map((line) => (JSON.parse(line) as { runId: string }).runId)
    expect(new Set(exported)).toEqual(new Set([otherId]))
    expect(error).toBeInstanceOf(LedgerDamagedError)
    await ledger.close()
  })

  const hostileId = "'+(globalThis.tallystickRan=1)+'"
  const bodies: readonly (readonly [string, string, (event: ForgedEvent) => ForgedEvent])[] = [
    [
      'the call of an event',
      'tool_call_id',
      (event) =>
        event.type === 'tool_request_ready'
          ? { ...event, toolCallId: `${hostileId}${String(event.body['part'])}` }
          : event,
    ],
    [
      'the run that it came from',
      'parent.runId',
      started({ parent: { runId: hostileId, seq: 1, relation: 'child' } }),
    ],
    [
      'a call that is collected',
      'calls.0.toolCallId',
      ofType('tool_requests_collected', (body) => ({
        calls: (body['calls'] as object[]).map((call) => ({ ...call, toolCallId: hostileId })),
      })),
    ],
    ['the run that does its work', 'child', ofType('tool_started', () => ({ child: hostileId }))],
    ['the call that it was taken from', 'reused', ofType('tool_result', () => ({ reused: hostileId }))],
    [
      'a call that is injected',
      'toolCallIds.0',
      ofType('tool_results_injected', () => ({ toolCallIds: [hostileId] })),
    ],
  ]
  it.each(bodies)(
    'is refused at the event whose body holds another text as %s',
    async (_name, what, change) => {
      const { path, runId } = await recorded()
      forgeRun(path, runId, change)
      const ledger = sqliteLedger(path, { readOnly: true })
      await expect(foldTo(ledger, runId)).rejects.toBeInstanceOf(LedgerDamagedError)
      await ledger.close()
      const { runs } = await allVerified(path)
      const broken = runs.find((run) => run.runId === runId)?.broken
      // A law may find it first, or a row that names calls of its run only.
      expect(broken?.what).toMatch(new RegExp(`^(${what.replaceAll('.', String.raw`\.`)}|body|law \\d+)$`))
    },
  )

  it('is found by verify wherever a body has not the shape of its type', async () => {
    const { path, runId } = await recorded()
    forgeRun(
      path,
      runId,
      ofType('tool_result', () => ({ durationMs: 'long' })),
    )
    const { runs } = await allVerified(path)
    expect(runs.find((run) => run.runId === runId)?.broken).toMatchObject({ what: 'durationMs' })
  })
})

function ofType(
  type: string,
  fields: (body: Record<string, unknown>) => Record<string, unknown>,
): (event: ForgedEvent) => ForgedEvent {
  return (event) =>
    event.type === type ? { ...event, body: { ...event.body, ...fields(event.body) } } : event
}

function started(fields: Record<string, unknown>): (event: ForgedEvent) => ForgedEvent {
  return ofType('run_started', () => fields)
}
