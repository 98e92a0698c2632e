import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../src/sqlite/open-database.ts'
import { openStore } from './support/open-store.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)
const start = stampFacts(run, [sampleFacts(run).run_started])

/** The settings of a connection to a ledger file. */
async function settings(options: SqliteLedgerOptions) {
  const path = temporaryFile()
  await sqliteLedger(path).close()
  const { database } = openDatabase(path, options)
  onTestFinished(() => void database.close())
  const setting = (name: string): unknown => database.pragma(name, { simple: true })
  return { setting, database }
}

describe('the connection to a ledger file', () => {
  it('writes ahead, syncs each commit, erases what it deletes, and trusts no schema', async () => {
    const { setting, database } = await settings({})
    expect(database.readonly).toBe(false)
    expect(
      ['journal_mode', 'synchronous', 'fullfsync', 'checkpoint_fullfsync'].map((name) => setting(name)),
    ).toEqual(['wal', 2, 1, 1])
    expect(['secure_delete', 'trusted_schema', 'busy_timeout'].map((name) => setting(name))).toEqual([
      ...[1, 0, 5_000],
    ])
    expect(setting('journal_size_limit')).toBe(64 * 1024 * 1024)
  })

  it('waits as long, and keeps a log as large, as it is asked to', async () => {
    const { setting } = await settings({ busyTimeoutMs: 7, maxWalBytes: 12_345 })
    expect([setting('busy_timeout'), setting('journal_size_limit')]).toEqual([7, 12_345])
  })

  it('cannot write where it was opened to read, and trusts no schema either', async () => {
    const { setting, database } = await settings({ readOnly: true })
    expect([database.readonly, setting('trusted_schema')]).toEqual([true, 0])
    expect(setting('journal_mode')).toBe('delete')
  })
})

describe('a ledger file that holds more than a read takes at once', () => {
  it('is searched by turn, wherever one turn ends and the next begins', async () => {
    const ledger = sqliteLedger(temporaryFile())
    onTestFinished(() => ledger.close())
    const length = 9
    for (let first = 1; first <= length; first++) {
      const runId = sampleRunId(first)
      const { run_started: begun, cancel_requested: cancel } = sampleFacts(runId)
      const { sessionId: _session, sessionPlace: _place, ...alone } = begun
      const facts = [alone, ...Array.from({ length: length - 1 }, () => cancel)]
      const events = stampFacts(runId, facts).map((event) => ({ ...event, turn: event.seq <= first ? 1 : 3 }))
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
      for (const turn of [0, 1, 2, 3, 4]) {
        const found = await Array.fromAsync(ledger.find({ runId, turn }))
        expect([first, turn, found]).toEqual([first, turn, events.filter((event) => event.turn === turn)])
      }
    }
  })

  it('is read, found and followed row by row', async () => {
    const ledger = sqliteLedger(temporaryFile())
    onTestFinished(() => ledger.close())
    const mebibyte = { ...sampleFacts(run).tool_progress, data: Array<string>(80_000).fill('said again') }
    const events = [...start, ...stampFacts(run, [mebibyte, mebibyte], { afterSeq: 1 })]
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    const seqsOf = (found: readonly { readonly seq: number }[]): readonly number[] =>
      found.map(({ seq }) => seq)
    expect(seqsOf(await Array.fromAsync(ledger.read(run)))).toEqual([1, 2, 3])
    for (const query of [{}, { runId: run }, { turn: 0 }, { types: ['tool_progress'] as const }]) {
      const all = await Array.fromAsync(ledger.find({}))
      const due = all.filter(
        ({ type, turn }) => (query.types?.includes(type as never) ?? true) && turn === (query.turn ?? turn),
      )
      expect(seqsOf(await Array.fromAsync(ledger.find(query)))).toEqual(seqsOf(due))
    }
    expect((await Array.fromAsync(ledger.tail())).map(({ event }) => event.seq)).toEqual([1, 2, 3])
  })
})

describe('a tail of a ledger file', () => {
  it('ends where the file ended when it began, also where it held nothing', async () => {
    const { store, append } = openStore()
    const first = { xid: '0', pos: 0, runId: '' }
    const begun = await store.beginTail(first)
    await append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    expect(await begun.batch(first)).toEqual({ rows: [], isLast: true })
    const again = await store.beginTail(first)
    expect((await again.batch(first)).rows.map(({ seq, xid }) => [seq, xid])).toEqual([[1, '0']])
  })
})
