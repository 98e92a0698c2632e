import { ConfigurationError, type RuntimeEvent } from '@tallystick/core'
import { toolCallIdOf } from '@tallystick/core/vocabulary'
import { everyFact, sampleCallId, sampleRunId, stamped } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { everyEvent } from '../src/store/find-events.ts'
import { freshSchema, hasPostgres, openLedger, withClient } from './support/postgres-database.ts'
import { statementsOf } from './support/postgres-statements.ts'
import { storeOf } from './support/lent-store.ts'

const run = sampleRunId(1)

async function filledSchema(): Promise<string> {
  const schema = freshSchema()
  const ledger = openLedger(schema)
  for (let ordinal = 1; ordinal <= 20; ordinal++) {
    const runId = sampleRunId(ordinal)
    const facts = everyFact(runId)
    const events = stamped(runId, [
      facts.run_started,
      ...Array.from({ length: 30 }, (_, turn) => [
        ...Array.from({ length: 9 }, () => ({ ...facts.assistant_text_delta, turn })),
        { ...facts.tool_progress, turn, toolCallId: toolCallIdOf(runId, turn, 1, 1) },
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
    const store = storeOf(openLedger(schema))
    const found = { runId: run, pos: 1, headSeq: 302 }
    const toolCallId = sampleCallId(run)
    const texts = await statementsOf(async () => {
      const start = { pos: 0, seq: 0 }
      const asked = { ...everyEvent, toolCallId }
      await store.search(asked, { by: 'run', run: found }, start)
      await store.search(asked, { by: 'turn', run: found, turn: 1 }, start)
      await store.search(asked, { by: 'type', run: found, type: 'run_started' }, start)
      await store.search(asked, { by: 'call', run: found }, start)
      await store.search(everyEvent, { by: 'place', fromPos: 0, toPos: 9 }, start)
      await store.searchedRuns(asked)
      await store.places({ ...everyEvent, fromAt: 5, toAt: 6 })
      await store.places(everyEvent)
    })
    const textOf = (name: string): string => texts.get(name)?.text ?? ''
    const filters = [0, 2_000_000_000_000, 1, ['run_started']]
    const everySeq = [0, 10_000]
    // Part of the table: for all of it, any index that holds places is as good.
    const somePlaces = [100, 110]
    const wanted = {
      run: [/Index (Scan|Only Scan) (using|on) event_seq/, [run]],
      turn: [/Index (Scan|Only Scan) (using|on) event_seq/, [run]],
      type: [/Index (Scan|Only Scan) (using|on) event_type/, [run, 'run_started']],
      call: [/Index (Scan|Only Scan) (using|on) event_call/, [run, sampleCallId(run)]],
      place: [/Index (Scan|Only Scan) (using|on) event_pkey/, []],
    } as const
    await withClient(async (client) => {
      await client.query(`analyze ${schema}.event; analyze ${schema}.run`)
      await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off')
      const planOf = async (text: string, values: readonly unknown[]): Promise<string> => {
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, [...values])
        return rows.map((row) => row['QUERY PLAN']).join('\n')
      }
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        await client.query(`set plan_cache_mode = ${mode}`)
        for (const [by, [index, values]] of Object.entries(wanted)) {
          const bounds = by === 'place' ? somePlaces : everySeq
          const plan = await planOf(textOf(`find by ${by}`), [...filters, ...bounds, ...values])
          expect(plan, `${by} under ${mode}`).not.toMatch(/Seq Scan/)
          expect(plan.slice(plan.lastIndexOf('Limit')), `${by} under ${mode}`).toMatch(index)
        }
        const called = await planOf(textOf('called'), [null, null, sampleCallId(run), run])
        expect(called).toMatch(/event_call/)
        expect(called).toMatch(/Index Scan using run_pkey on run/)
        expect(await planOf(textOf('places at'), [5, 6])).toMatch(/event_at/)
        expect(await planOf(textOf('places'), [])).not.toMatch(/Seq Scan/)
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
    const facts = everyFact(run)
    const data = Array.from({ length: 40 }, () => 'x'.repeat(10_000))
    const large = { ...facts.tool_progress, data }
    const events = stamped(run, [facts.run_started, ...Array.from({ length: 9 }, () => large)])
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    const lengthAfter = async (pos: number): Promise<number> =>
      (await storeOf(ledger).search(everyEvent, { by: 'place', fromPos: 0, toPos: 99 }, { pos, seq: 0 })).rows
        .length
    expect([await lengthAfter(0), await lengthAfter(4)]).toEqual([4, 3])
    expect(await Array.fromAsync(ledger.find())).toEqual(events)
    expect(await Array.fromAsync(ledger.find({ types: ['tool_progress'] }))).toEqual(events.slice(1))
  })
})
