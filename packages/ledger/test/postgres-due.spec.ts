import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { freshSchema, hasPostgres, openLedger, withClient } from './support/postgres-database.ts'
import { statementsOf } from './support/postgres-statements.ts'

// Only a platform without Postgres leaves it out, and the run says so.
it.skipIf(!hasPostgres)('a look at what is due goes by its index, however many runs wait', async () => {
  const schema = freshSchema()
  const ledger = openLedger(schema)
  const run = sampleRunId(1)
  const started = stampFacts(run, [sampleFacts(run).run_started])
  await ledger.append(run, { expectedSeq: 0, epoch: 1 }, started, { durability: 'barrier' })
  await withClient(async (client) => {
    await client.query(`insert into ${schema}.run (pos, run_id, head_seq, head_hash, epoch, seal, due_at)
      select 1000 + n, 'run ' || n, 1, 'x', 1, 'x', case when n % 2 = 0 then 9e12 + n end from generate_series(1, 20000) as n`)
    await client.query(`vacuum analyze ${schema}.run`)
    const statements = await statementsOf(async () => {
      expect(await Array.fromAsync(ledger.due({ before: 5 }))).toEqual([{ runId: run, dueAt: 0 }])
    })
    const [look] = [...statements.values()].filter(({ text }) => text.includes('due_at'))
    await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off')
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await client.query(`set plan_cache_mode = ${mode}`)
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, buffers off, costs off, timing off, summary off) ${look?.text}`,
        [...(look?.values ?? [])],
      )
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(plan).toMatch(/Index Scan using run_due on run .actual rows=1[. ]/)
      expect(plan).toMatch(/Index Cond: \(\(due_at > .*due_at <= /)
      expect(plan).not.toMatch(/Sort|Rows Removed/)
    }
  })
})
