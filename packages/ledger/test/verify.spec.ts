import { memoryLedger, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { verifyLedger, verifyRun, type RunVerdict, readRecord, redact } from '@tallystick/ledger'
import { RecordCheck, type RecordRow } from '@tallystick/ledger/record'
import { sqliteLedger, sqliteKeyring } from '@tallystick/ledger/sqlite'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { hashPortably, hashText } from '../src/format/sha256.ts'
import { EventAudit } from '../src/verify/event-audit.ts'
import { unheard } from './support/joining-cases.ts'
import { lendWith, storeOf } from './support/lent-store.ts'
import { withRaw, tamper } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import { allVerified, lastSeq, recorded, verified } from './support/recorded.ts'
import { eventsOf, play } from './support/removal-bed.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

describe('verify on a sound ledger', () => {
  it('finds every run and the store sound', async () => {
    const { path, runId, otherId } = await recorded()
    const counts = withRaw(
      path,
      (database) => [lastSeq(database, otherId), lastSeq(database, runId)] as const,
    )
    const { runs, store } = await allVerified(path)
    expect(runs).toEqual([
      { scope: 'run', runId: otherId, ok: true, events: counts[0] },
      { scope: 'run', runId, ok: true, events: counts[1] },
    ])
    expect(store).toEqual({
      scope: 'store',
      ok: true,
      runs: 2,
      brokenRuns: 0,
      droppedRuns: 0,
      events: counts[0] + counts[1],
    })
  })

  it('finds an empty ledger sound', async () => {
    const path = temporaryFile()
    await sqliteLedger(path).close()
    expect(await allVerified(path)).toEqual({
      runs: [],
      store: { scope: 'store', ok: true, runs: 0, brokenRuns: 0, droppedRuns: 0, events: 0 },
    })
  })

  it('verifies a ledger while its writer has it open, and while the run is not finished', async () => {
    const { path, runId } = await recorded()
    const ledger = sqliteLedger(path)
    await ledger.acquire(runId)
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    expect(await verified(path, runId)).toMatchObject({ ok: true })
    await ledger.close()
  })

  it('is not misled by a writer that appends while it reads', async () => {
    const runId = sampleRunId(1)
    const { run_started: start, input_received: input } = sampleFacts(runId)
    const [memory, file] = [memoryLedger(), sqliteLedger(emptyLedgerFile())]
    const append = async (ledger: Ledger): Promise<void> => {
      const { seq = 0, epoch = 1 } = (await ledger.head(runId)) ?? {}
      const next = stampFacts(runId, seq === 0 ? [start, input] : [input], { afterSeq: seq })
      await ledger.append(runId, { expectedSeq: seq, epoch }, next, { durability: 'lazy' })
    }
    const { database } = storeOf(file)
    let isAppended = false
    const busy: readonly Ledger[] = [
      {
        ...memory,
        async *read(id, range) {
          await append(memory)
          yield* memory.read(id, range)
        },
      },
      lendWith(file, {
        database: {
          ...database,
          async askBatch(text, order, values) {
            if (!isAppended) await append(file)
            isAppended = true
            return await database.askBatch(text, order, values)
          },
        },
      }),
    ]
    for (const ledger of busy) {
      await append(ledger)
      expect(await verifyRun(ledger, runId)).toEqual({ scope: 'run', runId, ok: true, events: 2 })
      expect(await ledger.head(runId)).toEqual({ seq: 3, epoch: 1 })
      await ledger.close()
    }
  })

  it('says of a run that is not there that it is not', async () => {
    const { path } = await recorded()
    await expect(verified(path, sampleRunId(9))).rejects.toThrow(
      `Run ${sampleRunId(9)} is not in this ledger`,
    )
  })

  it('checks the laws of a ledger that lends no rows', async () => {
    const ledger = memoryLedger()
    const runId = await recordRun(ledger)
    expect(await Array.fromAsync(verifyLedger(ledger))).toEqual([
      { scope: 'run', runId, ok: true, events: (await ledger.head(runId))?.seq },
      {
        scope: 'store',
        ok: true,
        runs: 1,
        brokenRuns: 0,
        droppedRuns: 0,
        events: (await ledger.head(runId))?.seq,
      },
    ])
  })
})

describe('verify on a list of runs that is damaged', () => {
  it('finds a listed run that is not there, and an id that no run can have, at their first event', async () => {
    const sound = memoryLedger()
    const runId = await recordRun(sound)
    const listed = [runId, 'no id' as RunId]
    const ledger: Ledger = {
      ...sound,
      async *runs() {
        for await (const run of sound.runs()) for (const each of listed) yield { ...run, runId: each }
      },
      head: () => Promise.resolve(undefined),
    }
    const broken = [
      { runId, seq: 1, what: 'run', expected: 'the run that is listed', found: 'none' },
      { runId: listed[1], seq: 1, what: 'run_id', expected: 'a run id', found: '"no id"' },
    ]
    expect(await Array.fromAsync(verifyLedger(ledger))).toEqual([
      ...broken.map((each) => ({ scope: 'run', runId: each.runId, ok: false, events: 0, broken: each })),
      { scope: 'store', ok: false, runs: 2, brokenRuns: 2, droppedRuns: 0, events: 0 },
    ])
  })
})

describe('verify on events that break a law', () => {
  const runId = sampleRunId(1)
  const facts = sampleFacts(runId)

  async function verdictOf(ledger: Ledger): Promise<RunVerdict> {
    const batch = stampFacts(runId, [facts.run_started, facts.input_received, facts.tool_result])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, batch, { durability: 'lazy' })
    return verifyRun(ledger, runId)
  }

  it.each(['in memory', 'in a file'])(
    'names the first, with what would have been legal, %s',
    async (place) => {
      const ledger = place === 'in memory' ? memoryLedger() : sqliteLedger(emptyLedgerFile())
      const { ok, events, broken } = await verdictOf(ledger)
      expect({ ok, events }).toEqual({ ok: false, events: 2 })
      expect(broken).toMatchObject({ runId, seq: 3, what: 'law 5' })
      expect(broken?.found).toContain('tool_result')
      expect(broken?.expected).toContain('model_call_started')
      await ledger.close()
    },
  )

  it('finds faults of a store that lends no rows: gaps, other runs, a second copy of a fact that is recorded once, a wrong head', async () => {
    const sound = memoryLedger()
    const id = await recordRun(sound)
    const events = await Array.fromAsync(sound.read(id))
    const result = events.findIndex(({ type }) => type === 'tool_result')
    const reading = (change: Partial<Ledger>): Ledger => ({ ...sound, ...change })
    const yielding = (changed: typeof events): Ledger =>
      reading({
        async *read() {
          yield* changed
        },
      })
    const broken = async (ledger: Ledger): Promise<unknown> => {
      const { broken: place } = await verifyRun(ledger, id)
      return place && [place.seq, place.what]
    }
    expect(await broken(yielding(events))).toBeUndefined()
    expect(await broken(yielding(events.toSpliced(result, 1)))).toEqual([result + 1, 'seq'])
    const foreign = events.with(result, {
      ...events[result],
      runId: sampleRunId(9),
    } as (typeof events)[number])
    expect(await broken(yielding(foreign))).toEqual([result + 1, 'seq'])
    const twice = events
      .toSpliced(result + 1, 0, events[result] as (typeof events)[number])
      .map((event, index) => ({ ...event, seq: index + 1 }))
    expect(await broken(yielding(twice))).toEqual([result + 2, `tool_result ${events[result]?.toolCallId}`])
    const head = { seq: events.length + 1, epoch: 1 }
    expect(await broken(reading({ head: async () => head }))).toEqual([events.length, 'head'])
    expect(await broken(reading({ head: async () => ({ seq: events.length, epoch: 0 }) }))).toEqual([
      events.length,
      'epoch of the head',
    ])
  })
})

const run = sampleRunId(1)
const facts = sampleFacts(run)
const [start] = stampFacts(run, [facts.run_started]) as readonly [RuntimeEvent]
const [ended, again, early] = stampFacts(run, [facts.run_finished, facts.run_finished, facts.tool_result], {
  afterSeq: 1,
}) as readonly [RuntimeEvent, RuntimeEvent, RuntimeEvent]

describe('the audit of the events of a run', () => {
  it('says nothing of a sound event, and knows the run after it', () => {
    const audit = new EventAudit({ accumulates: true })
    expect([audit.known.state, audit.session]).toEqual([undefined, undefined])
    expect(audit.check(start)).toBeUndefined()
    expect(audit.known.state?.seq).toBe(1)
    expect(audit.known.accumulated?.agents).toEqual(['assistant'])
    expect(audit.session).toEqual({ sessionId: `session of ${run}`, sessionPlace: 1 })
  })

  it('accumulates nothing where no summary is to be compared', () => {
    const audit = new EventAudit()
    expect(audit.check(start)).toBeUndefined()
    expect(audit.known).toMatchObject({ state: { seq: 1 }, accumulated: undefined })
  })

  it.each<readonly [string, object, object]>([
    [
      'an id that is none',
      { parent: { runId: 'no id', seq: 1, relation: 'fork' } },
      { what: 'parent.runId', expected: 'a run id', found: '"no id"' },
    ],
    ['a field of another shape', { agent: 7 }, { what: 'agent', expected: 'as run_started has it' }],
  ])('finds %s, and goes no further', (_name, change, fault) => {
    const audit = new EventAudit()
    expect(audit.check({ ...start, ...change })).toMatchObject(fault)
    expect(audit.known.state).toBeUndefined()
  })

  it('finds a fact that is stated twice, and an event that is not legal there', () => {
    const audit = new EventAudit()
    audit.check(start)
    expect(audit.check(early)).toMatchObject({
      what: 'law 5',
      found: expect.stringContaining('tool_result'),
    })
    audit.check(ended)
    expect(audit.check(again)).toMatchObject({ what: 'run_finished', expected: 'once', found: 'twice' })
  })
})

function open(path: string): Ledger {
  const ledger = sqliteLedger(path, {})
  onTestFinished(() => ledger.close())
  return ledger
}

describe('the inbox of a run that ends', () => {
  it('is read: input that joins from another process is heard, however close to the end it comes', async () => {
    const path = emptyLedgerFile()
    expect(await unheard(open(path), open(path), effort({ quick: 5, thorough: 20 }))).toEqual([])
  })

  it('is named by verify where it holds an unread entry', async () => {
    const { path, runId } = await recorded()
    tamper(path, (database) => {
      database
        .prepare(`insert into inbox (run_id, key, at, command) values (?, 'lost', 1, '{"type":"cancel"}')`)
        .run(runId)
    })
    const verdict = await verified(path, runId)
    expect(verdict).toMatchObject({ ok: false, broken: { what: 'law 15', found: '1 unread: "lost"' } })
  })
})

async function readRows(ledger: Ledger, runId: RunId): Promise<RecordRow[]> {
  const rows: RecordRow[] = []
  for (let page; page === undefined || page.length > 0;) {
    page = await readRecord(ledger, runId, { after: rows.length, limit: 7 })
    rows.push(...page)
  }
  return rows
}

/** How each row was found, up to the first fault. */
function checkAll(rows: readonly RecordRow[], events: readonly RuntimeEvent[]): readonly unknown[] {
  const check = new RecordCheck()
  const found: unknown[] = []
  for (const [index, row] of rows.entries()) {
    const checked = check.check(row, events[index]!)
    found.push('fault' in checked ? { seq: check.rows + 1, ...checked.fault } : checked.content)
    if ('fault' in checked) break
  }
  return found
}

it('finds the rows of runs sound that the runtime wrote, and names what was changed in one', async () => {
  const ledger = sqliteLedger(temporaryFile())
  await play(ledger, { sessionId: 's' })
  // It begins with the messages of the run before, which its row only names.
  const runId = await play(ledger, { sessionId: 's' })
  const [rows, events] = [await readRows(ledger, runId), await eventsOf(ledger, runId)]
  expect(checkAll(rows, events)).toEqual(events.map(() => 'whole'))

  const carried = events.findIndex(({ type }) => type === 'history_carried')
  const otherPast = events.map((event) =>
    event.type === 'history_carried' ? { ...event, messages: event.messages.slice(1) } : event,
  )
  expect(checkAll(rows, otherPast).at(-1)).toMatchObject({ seq: carried + 1, what: 'body' })

  for (const seq of [1, 4, rows.length]) {
    const body = rows.with(seq - 1, { ...rows[seq - 1]!, body: rows[seq - 1]!.body.replace('"', '" ') })
    expect(checkAll(body, events).at(-1)).toMatchObject({ seq, what: 'hash' })
    const at = rows.with(seq - 1, { ...rows[seq - 1]!, at: rows[seq - 1]!.at + 1 })
    expect(checkAll(at, events).at(-1)).toMatchObject({ seq, what: 'hash' })
    const left = rows.toSpliced(seq - 1, 1)
    expect(checkAll(left, events.toSpliced(seq - 1, 1)).at(-1)).toMatchObject(
      seq === rows.length ? {} : { seq, what: 'seq' },
    )
    const shown = { ...events[seq - 1]!, inboxKey: 'of nobody' }
    expect(checkAll(rows, events.with(seq - 1, shown)).at(-1)).toMatchObject({
      seq,
      what: 'inboxKey of the event shown',
    })
  }
  await ledger.close()
})

it('finds a removed event sound as what it is, and what is left of it changed', async () => {
  const ledger = sqliteLedger(temporaryFile())
  const runId = await play(ledger)
  await redact(ledger, runId, [2], { by: 'ada', reason: 'a name' })
  const [rows, events] = [await readRows(ledger, runId), await eventsOf(ledger, runId)]
  expect(checkAll(rows, events)).toEqual(events.map(({ seq }) => (seq === 2 ? 'removed' : 'whole')))

  const changed = rows.with(1, { ...rows[1]!, body: rows[1]!.body.replace('ada', 'bob') })
  expect(checkAll(changed, events).at(-1)).toMatchObject({ seq: 2, what: 'body' })
  const unrecorded = rows.with(1, { ...rows[1]!, removal: null })
  expect(checkAll(unrecorded, events).at(-1)).toMatchObject({ seq: 2, what: 'removal' })
  await ledger.close()
})

it('finds sealed rows sound for readers with the key and without, as far as the facts beside them go', async () => {
  const keys = sqliteKeyring(temporaryFile('keys.db'))
  const path = temporaryFile()
  const ledger = sqliteLedger(path, { keys })
  await play(ledger, { subject: 'customer 7', sessionId: 's' })
  const runId = await play(ledger, { subject: 'customer 7', sessionId: 's' })
  const [rows, opened] = [await readRows(ledger, runId), await eventsOf(ledger, runId)]
  expect(checkAll(rows, opened)).toEqual(opened.map(() => 'sealed'))
  await keys.destroy('customer 7')
  const erased = await eventsOf(ledger, runId)
  expect(checkAll(rows, erased)).toEqual(erased.map(() => 'sealed'))
  const { type, seq } = opened.find((event) => event.type === 'run_finished')!
  const forged = { ...opened[seq - 1]!, reason: 'cancelled' } as RuntimeEvent
  expect(checkAll(rows, opened.with(seq - 1, forged)).at(-1)).toMatchObject({
    seq,
    what: `reason of the event shown`,
  })
  expect(type).toBe('run_finished')
  await ledger.close()
  keys.close()
})

it('hashes in a browser as it does on Node', () => {
  for (const text of ['', 'abc', 'Grüße 🪵', 'x'.repeat(100_000)]) {
    for (const encoding of ['hex', 'base64url'] as const) {
      expect(hashPortably(text, encoding)).toBe(hashText(text, encoding))
    }
  }
})
