import type { Head } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { chainFaults, textsOf } from './support/postgres-chain.ts'
import { postgresChild } from './support/postgres-children.ts'
import { connectionString, freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'

const run = sampleRunId(1)

interface Acknowledged {
  readonly runId: typeof run
  readonly seq: number
  readonly texts: readonly string[]
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('several processes on one Postgres ledger', () => {
  it('make one ledger when they begin at once on an empty database', async () => {
    const schema = freshSchema()
    const ordinals = [1, 2, 3]
    const children = ordinals.map((ordinal) =>
      postgresChild(['make', connectionString, schema, String(ordinal)]),
    )
    expect(await Promise.all(children.map((child) => child.ended()))).toEqual(
      ordinals.map(() => [{ seq: 1, epoch: 1 }]),
    )
    const ledger = openLedger(schema)
    const runIds = (await Array.fromAsync(ledger.runs())).map(({ runId }) => runId)
    expect(runIds.toSorted()).toEqual(ordinals.map((ordinal) => sampleRunId(ordinal)))
    expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({
      ok: true,
      runs: 3,
      events: 3,
    })
  })

  it('append to shared runs under load without a gap, a lost acknowledgement or a broken chain', async () => {
    const schema = freshSchema()
    const [runs, appends] = [3, 150]
    const names = ['left', 'right']
    const children = names.map((name) =>
      postgresChild(['contend', connectionString, schema, JSON.stringify([name, runs, appends])]),
    )
    const said = (await Promise.all(children.map((child) => child.ended()))).flat()
    const acknowledged = said.filter((line): line is Acknowledged => Object.hasOwn(line as object, 'seq'))
    expect(acknowledged).toHaveLength(names.length * appends)
    const ledger = openLedger(schema)
    let events = 0
    for (const { runId } of await Array.fromAsync(ledger.runs())) {
      expect(await chainFaults(ledger, runId)).toEqual([])
      const texts = await textsOf(ledger, runId)
      events += texts.size
      for (const { seq, texts: own } of acknowledged.filter((each) => each.runId === runId)) {
        expect(own.map((_text, index) => texts.get(seq + index))).toEqual(own)
      }
    }
    // Whatever was not acknowledged was refused, so the ledger holds nothing else.
    expect(events).toBe(2 * names.length * appends)
    const conflicts = said.flatMap((line) => (line as { conflicts?: number }).conflicts ?? [])
    expect(conflicts.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(0)
  })

  it('lose nothing that they acknowledged when they are killed, time and again on one run', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    let acknowledged = 0
    for (const [round, acknowledgements] of [1, 7, 19].entries()) {
      const child = postgresChild(['append', connectionString, schema])
      for (let received = 0; received < acknowledgements; received++)
        acknowledged = ((await child.hear()) as Head).seq
      await child.kill()
      const head = await ledger.acquire(run)
      expect(head.seq).toBeGreaterThanOrEqual(acknowledged)
      expect(head.epoch).toBe(2 * round + 2)
      expect(await chainFaults(ledger, run)).toEqual([])
      expect([...(await textsOf(ledger, run)).keys()]).toEqual(
        Array.from({ length: head.seq }, (_, index) => index + 1),
      )
    }
  })

  // Windows knows no way to stop a process and let it continue.
  it.skipIf(process.platform === 'win32')(
    'shut each other out: a writer that was stopped, overtaken and continued appends nothing more',
    async () => {
      const schema = freshSchema()
      const ledger = openLedger(schema)
      const child = postgresChild(['defend', connectionString, schema])
      for (let round = 0; round < 20; round++) {
        for (let received = 0; received <= round % 4; received++)
          expect(await child.hear()).toHaveProperty('seq')
        child.signal('SIGSTOP')
        const head = await ledger.acquire(run)
        const own = stampFacts(run, [sampleFacts(run).cancel_requested], {
          afterSeq: head.seq,
          epoch: head.epoch,
        })
        const after = await ledger.append(run, { expectedSeq: head.seq, epoch: head.epoch }, own, {
          durability: 'barrier',
        })
        child.signal('SIGCONT')
        let said = await child.hear()
        while (said !== undefined && !Object.hasOwn(said as object, 'conflict')) {
          // Acknowledged before it was stopped, and read from the pipe only now.
          expect((said as Head).seq).toBeLessThanOrEqual(head.seq)
          said = await child.hear()
        }
        expect(said).toEqual({ conflict: 'epoch' })
        expect(await ledger.head(run)).toEqual(after)
        child.tell('continue')
      }
      await child.kill()
      expect(await chainFaults(ledger, run)).toEqual([])
    },
  )
})
