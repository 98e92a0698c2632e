import type { Ledger, RunId } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { nameChannel, encodeWord, decodeWord } from '../src/postgres/changes.ts'
import { ChangeNotifier } from '../src/postgres/changes.ts'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
  withClient,
} from './support/postgres-database.ts'

const [run, otherRun] = [sampleRunId(1), sampleRunId(2)]
const never = 0x7fffffff

async function start(ledger: Ledger, runId: RunId = run): Promise<void> {
  const events = stampFacts(runId, [sampleFacts(runId).run_started])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
}

async function cancel(ledger: Ledger, afterSeq: number, runId: RunId = run): Promise<void> {
  const events = stampFacts(runId, [sampleFacts(runId).cancel_requested], { afterSeq })
  await ledger.append(runId, { expectedSeq: afterSeq, epoch: 1 }, events, { durability: 'lazy' })
}

/** One subscription, and a way to wait for a hint at which a condition holds. */
function following(ledger: Ledger): (holds: () => Promise<boolean>) => Promise<void> {
  let received = 0
  let wake: (() => void) | undefined
  const hints = ledger.changes(run).subscribe(() => {
    received++
    wake?.()
  })
  onTestFinished(() => hints.unsubscribe())
  return async (holds) => {
    for (let seen = -1; ;) {
      // Asked only when there was a hint since it was asked last.
      if (seen !== received) {
        seen = received
        if (await holds()) return
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('changes of a run in Postgres', () => {
  /** A ledger whose connections can be told from those of others. */
  function named(name: string, options: Parameters<typeof openLedger>[1] = {}): Ledger {
    const url = new URL(connectionString)
    url.searchParams.set('application_name', name)
    return openLedger(name, { connectionString: url.href, ...options })
  }

  const listening = (name: string): Promise<{ pid: number }[]> =>
    rowsOf(`select pid from pg_stat_activity where application_name = $1 and query like 'listen %'`, [name])

  /** Waits until the server sees so many connections of that name that listen. */
  async function untilListening(name: string, count: number): Promise<void> {
    while ((await listening(name)).length !== count);
  }

  it('take one connection however many runs are followed, and none without a follower', async () => {
    const schema = freshSchema()
    const ledger = named(schema)
    await start(ledger)
    await untilListening(schema, 0)
    const subscriptions = Array.from({ length: 8 }, (_, index) => {
      return ledger.changes(sampleRunId(1 + (index % 4))).subscribe()
    })
    await untilListening(schema, 1)
    for (const subscription of subscriptions.slice(1)) subscription.unsubscribe()
    await untilListening(schema, 1)
    subscriptions[0]?.unsubscribe()
    await untilListening(schema, 0)
    const again = ledger.changes(run).subscribe()
    await untilListening(schema, 1)
    expect(await listening(schema)).toHaveLength(1)
    again.unsubscribe()
  })

  it.each([
    ['told by others', { pollIntervalMs: never }],
    ['found by looking, behind a pooler', { pooled: true, pollIntervalMs: 5 }],
  ])('are %s: appends, commands and take-overs', async (_how, options) => {
    const schema = freshSchema()
    const [mine, theirs] = [named(schema, options), openLedger(schema)]
    await start(theirs)
    const until = following(mine)
    await untilListening(schema, 'pooled' in options ? 0 : 1)
    await cancel(theirs, 1)
    await until(async () => (await mine.head(run))?.seq === 2)
    await theirs.put(run, { key: 'k1', command: { type: 'cancel' }, at: 1 })
    await until(async () => (await mine.inbox(run)).length === 1)
    await theirs.acquire(run)
    await until(async () => (await mine.head(run))?.epoch === 2)
    expect(await mine.head(run)).toEqual({ seq: 2, epoch: 2 })
  })

  it('are followed again when the connection that listens was lost', async () => {
    const schema = freshSchema()
    const [mine, theirs] = [named(schema, { pollIntervalMs: 20 }), openLedger(schema)]
    await start(mine)
    const until = following(mine)
    await untilListening(schema, 1)
    const [lost] = await listening(schema)
    await rowsOf('select pg_terminate_backend($1)', [lost?.pid])
    while ((await listening(schema)).every(({ pid }) => pid === lost?.pid));
    await cancel(theirs, 1)
    await until(async () => (await mine.head(run))?.seq === 2)
    expect(await listening(schema)).toHaveLength(1)
  })

  it('are hinted at once: what a ledger tells the others it does not hear again', async () => {
    const schema = freshSchema()
    const [mine, theirs] = [named(schema, { pollIntervalMs: never }), openLedger(schema)]
    await withClient(async (client) => {
      let reported: (() => void) | undefined
      client.on('notification', () => reported?.())
      await client.query(`listen ${nameChannel(schema)}`)
      const word = (): Promise<void> => new Promise((resolve) => (reported = resolve))
      const first = word()
      await start(theirs)
      await first
      const received = { run: 0, otherRun: 0 }
      const hints = [
        mine.changes(run).subscribe(() => received.run++),
        mine.changes(otherRun).subscribe(() => received.otherRun++),
      ]
      onTestFinished(() => hints.forEach((each) => each.unsubscribe()))
      // At first it looks, and it hints when it begins to listen.
      await vi.waitUntil(() => received.run === 2 && received.otherRun === 2, { timeout: 60_000 })
      const own = word()
      await cancel(mine, 1)
      await own
      await start(theirs, otherRun)
      // Words arrive in their order: had its own one come back, it would have been before this one.
      await vi.waitUntil(() => received.otherRun > 2, { timeout: 60_000 })
      expect(received).toEqual({ run: 3, otherRun: 3 })
    })
  })

  it('outlive words on the channel that mean nothing', async () => {
    const schema = freshSchema()
    const [mine, theirs] = [named(schema, { pollIntervalMs: never }), openLedger(schema)]
    await start(mine)
    const until = following(mine)
    await untilListening(schema, 1)
    for (const word of ['', '{', '7', '{"a":1}', '[]', '[7]']) {
      await rowsOf('select pg_notify($1, $2)', [nameChannel(schema), word])
    }
    await cancel(theirs, 1)
    await until(async () => (await mine.head(run))?.seq === 2)
    expect(await mine.head(run)).toEqual({ seq: 2, epoch: 1 })
  })
})

describe('a word between ledgers', () => {
  it('names the runs, and none where they are too many for a notification', () => {
    const few = { from: 'me', runIds: [run, otherRun] }
    expect(decodeWord(encodeWord(few))).toEqual(few)
    const many = { from: 'me', runIds: Array.from({ length: 300 }, (_, index) => sampleRunId(index)) }
    expect(Buffer.byteLength(encodeWord(many))).toBeLessThan(8_000)
    expect(decodeWord(encodeWord(many))).toEqual({ from: 'me', runIds: [] })
  })

  it('goes at once, and what follows goes together with what follows it', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const sent: string[] = []
    const notifier = new ChangeNotifier('me', async (payload) => void sent.push(payload))
    const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)
    notifier.notify(run)
    expect(sent.map(decodeWord)).toEqual([{ from: 'me', runIds: [run] }])
    await pass(0)
    for (const runId of [otherRun, run, otherRun, otherRun]) notifier.notify(runId)
    await pass(24)
    expect(sent).toHaveLength(1)
    await pass(1)
    expect(sent.map(decodeWord).slice(1)).toEqual([{ from: 'me', runIds: [otherRun, run] }])
    await pass(100)
    expect(sent).toHaveLength(2)
    notifier.notify(run)
    expect(sent).toHaveLength(3)
  })

  it('is lost without harm where it cannot be sent, and the next one goes', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let tries = 0
    const notifier = new ChangeNotifier('me', async () => {
      tries++
      throw new Error('no connection')
    })
    notifier.notify(run)
    await vi.advanceTimersByTimeAsync(25)
    notifier.notify(run)
    await vi.advanceTimersByTimeAsync(25)
    expect(tries).toBe(2)
    await notifier.flush()
    expect(tries).toBe(2)
  })
})
