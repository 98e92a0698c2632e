import { ConfigurationError, type RuntimeEvent } from '@tallystick/core'
import { deriveToolCallId } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import type { Statement } from '../src/postgres/connections.ts'
import {
  type AskedEvents,
  everyEvent,
  findPlaces,
  findRuns,
  searchBatch,
  type SearchSource,
} from '../src/store/find-events.ts'
import { freshSchema, hasPostgres, openLedger, withClient } from './support/postgres-database.ts'
import { statementsOf } from './support/postgres-statements.ts'
import { storeOf } from './support/lent-store.ts'

const run = sampleRunId(1)

async function filledSchema(): Promise<string> {
  const schema = freshSchema()
  const ledger = openLedger(schema)
  for (let ordinal = 1; ordinal <= 20; ordinal++) {
    const runId = sampleRunId(ordinal)
    const facts = sampleFacts(runId)
    const events = stampFacts(runId, [
      facts.run_started,
      ...Array.from({ length: 30 }, (_, turn) => [
        ...Array.from({ length: 9 }, () => ({ ...facts.assistant_text_delta, turn })),
        { ...facts.tool_progress, turn, toolCallId: deriveToolCallId(runId, turn, 1, 1) },
      ]).flat(),
      facts.tool_result,
    ])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
  return schema
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a search in Postgres', () => {
  it('finds events by the index of what it was asked for, however the plan is made', async () => {
    const schema = await filledSchema()
    const { database } = storeOf(openLedger(schema))
    const found = { runId: run, pos: 1, headSeq: 302 }
    const toolCallId = sampleCallId(run)
    const start = { pos: 0, seq: 0 }
    const filters = { fromAt: 0, toAt: 2_000_000_000_000, types: ['run_started'] } as const
    const asked: AskedEvents = { ...everyEvent, ...filters }
    // Part of the table: for all of it, any index that holds places is as good.
    const place = { by: 'place', fromPos: 100, toPos: 110 } as const
    const ofCall = { ...asked, toolCallId }
    const search = (query: AskedEvents, source: SearchSource) => () =>
      searchBatch(database, query, source, source.by === 'place' ? { pos: 100, seq: 0 } : start)
    const bySeq = /Index (Scan|Only Scan) (using|on) event_seq/
    const wanted: readonly (readonly [() => Promise<unknown>, RegExp])[] = [
      [search(asked, { by: 'run', run: found }), bySeq],
      [search({ ...asked, turn: 1 }, { by: 'run', run: found }), bySeq],
      [search(ofCall, { by: 'call', run: found }), /(using|on) event_call/],
      [search(asked, place), /(using|on) event_pkey/],
      [search({ ...asked, types: ['tool_deferred'] }, { ...place, toPos: 6_000 }), /(using|on) event_rare/],
      [() => findRuns(database, ofCall), /event_call[^]*run_pkey|run_pkey[^]*event_call/],
      [() => findPlaces(database, { ...everyEvent, fromAt: 5, toAt: 6 }), /event_at/],
      [() => findPlaces(database, everyEvent), /event_pkey/],
    ]
    await withClient(async (client) => {
      await client.query(`analyze ${schema}.event; analyze ${schema}.run`)
      await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off')
      for (const [ask, index] of wanted) {
        const { text, values } = [...(await statementsOf(ask)).values()].at(-1) as Statement
        for (const mode of ['force_custom_plan', 'force_generic_plan']) {
          await client.query(`set plan_cache_mode = ${mode}`)
          const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, [...values])
          const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
          expect(plan, `${text} under ${mode}`).not.toMatch(/Seq Scan/)
          expect(plan.slice(Math.max(0, plan.lastIndexOf('Limit'))), `${text} under ${mode}`).toMatch(index)
        }
      }
    })
  })

  it('finds nothing under names that Postgres cannot hold, and refuses them only as types of events', async () => {
    const ledger = openLedger(await filledSchema())
    for (const name of ['a\0b', '\ud800']) {
      const types = [name, 'tool_result'] as unknown as readonly RuntimeEvent['type'][]
      expect(await Array.fromAsync(ledger.find({ sessionId: name }))).toEqual([])
      expect(await Array.fromAsync(ledger.find({ runId: name as typeof run }))).toEqual([])
      expect(
        await Array.fromAsync(ledger.find({ toolCallId: name as ReturnType<typeof sampleCallId> })),
      ).toEqual([])
      await expect(Array.fromAsync(ledger.find({ types }))).rejects.toBeInstanceOf(ConfigurationError)
    }
  })

  it('reads pages of large bodies that end early', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const facts = sampleFacts(run)
    const data = Array.from({ length: 40 }, () => 'x'.repeat(10_000))
    const large = { ...facts.tool_progress, data }
    const events = stampFacts(run, [facts.run_started, ...Array.from({ length: 9 }, () => large)])
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    const lengthAfter = async (pos: number): Promise<number> =>
      (
        await searchBatch(
          storeOf(ledger).database,
          everyEvent,
          { by: 'place', fromPos: 0, toPos: 99 },
          { pos, seq: 0 },
        )
      ).rows.length
    expect([await lengthAfter(0), await lengthAfter(4)]).toEqual([4, 3])
    expect(await Array.fromAsync(ledger.find())).toEqual(events)
    expect(await Array.fromAsync(ledger.find({ types: ['tool_progress'] }))).toEqual(events.slice(1))
  })
})
