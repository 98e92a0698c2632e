import { createRuntime, type Ledger, LedgerDamagedError, memoryLedger, type RunId } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { manualClock } from '@tallystick/testkit'
import {
  applyRetention,
  exportEvents,
  foldTo,
  importEvents,
  redact,
  verifyLedger,
  verifyRun,
} from '@tallystick/ledger'
import { replayRun } from '@tallystick/replay'
import { sqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect } from 'vitest'
import { eventsOf, storeVerdict } from './removal-bed.ts'
import { carriedBy, chat, chatAgent, counted, type SessionBed } from './session-bed.ts'
import { emptyLedgerFile, temporaryFile } from './temporary-folder.ts'

const by = { by: 'ada', reason: 'asked for' }

/** What a session promises of its next run, each case by its claim. Any store of this package keeps them. */
export const sessionCases: Readonly<Record<string, (bed: SessionBed) => Promise<void>>> = {
  async 'a late run stores as many rows and bytes as run 5, and reads as many events and pieces'({
    runsMany = 200,
    rowsApart = 0,
    open,
    stored,
    piecesRead,
  }) {
    const { ledger, asked } = counted(open())
    const measure = async (): Promise<Cost> => ({ ...(await stored()), ...asked, pieces: piecesRead() })
    const costOf = async (run: number): Promise<Cost> => {
      const sessionId = `session ${run}`
      const before = memoryLedger()
      await chat(before, run - 1, { sessionId })
      await importEvents(ledger, exportEvents(before))
      const measured = await measure()
      await chat(ledger, 1, { sessionId })
      return difference(await measure(), measured)
    }
    const [fifth, last] = [await costOf(5), await costOf(runsMany)]
    const { bytes, rows, ...counts } = last
    expect(fifth).toMatchObject(counts)
    expect(counts.runs).toBe(1)
    // The messages that the last run added, and no more.
    expect(counts.pieces).toBeLessThanOrEqual(4)
    expect(Math.abs(rows - fifth.rows)).toBeLessThanOrEqual(rowsApart)
    // Some numbers have more digits, and a row has an envelope: the messages of a session that were copied would be more.
    expect(Math.abs(bytes - fifth.bytes)).toBeLessThan(256 + 512 * rowsApart)
    await ledger.close()
  },

  async 'the last run is read, folded, verified, replayed, forked and exported with all that it began with'({
    open,
  }) {
    const ledger = open()
    const ids = await chat(ledger, 12)
    await ledger.close()
    const again = open()
    const last = ids.at(-1) as RunId
    expect((await carriedBy(again, last)).messages).toHaveLength(11 * 4)
    expect(readMessages((await foldTo(again, last)).history)).toHaveLength(12 * 4)
    expect(await verifyRun(again, last)).toMatchObject({ ok: true })
    expect(await storeVerdict(again)).toMatchObject({ ok: true })
    const report = await replayRun(again, last, () => chatAgent(0))
    expect(report).toEqual({ runId: last, events: report.events })
    const agent = chatAgent(1)
    const runtime = createRuntime({ ledger: again, agents: [agent], host: { clock: manualClock() } })
    const fork = runtime.fork(last, { atSeq: 3, agent })
    expect((await fork.result).reason).toBe('answered')
    expect((await carriedBy(again, fork.id)).messages).toEqual((await carriedBy(again, last)).messages)
    await runtime.idle()
    const alone = memoryLedger()
    await importEvents(alone, exportEvents(again, last))
    expect(await eventsOf(alone, last)).toEqual(await eventsOf(again, last))
    await again.close()
  },

  async 'an export of a session holds what was said once, and is imported into what it was exported from'({
    open,
  }) {
    const ledger = open()
    const ids = await chat(ledger, 24)
    const lines = await Array.fromAsync(exportEvents(ledger))
    const lengthOf = (runId: RunId | undefined): number =>
      lines.filter((line) => line.includes(`"runId":"${runId}"`)).reduce((sum, { length }) => sum + length, 0)
    expect(lengthOf(ids[23]) - lengthOf(ids[3])).toBeLessThan(64)
    for (const copy of [memoryLedger(), sqliteLedger(emptyLedgerFile())]) {
      await importEvents(copy, lines)
      for (const runId of ids) expect(await eventsOf(copy, runId)).toEqual(await eventsOf(ledger, runId))
      expect(await Array.fromAsync(exportEvents(copy))).toEqual(lines)
      expect(await importEvents(copy, lines)).toMatchObject({ events: 0 })
      await copy.close()
    }
    await ledger.close()
  },

  async 'a run that is dropped, or redacted whole, takes nothing from the runs after it, and what nobody begins with goes'({
    open,
    pieces,
    holds,
  }) {
    const ledger = open()
    const ids = await chat(ledger, 6)
    const before = await Promise.all(ids.map((runId) => eventsOf(ledger, runId)))
    for (const runId of ids.slice(0, 3)) await redact(ledger, runId, 'all', by)
    for (const [index, runId] of ids.entries()) {
      if (index >= 3) expect(await eventsOf(ledger, runId)).toEqual(before[index])
      expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    }
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true })
    expect(await pieces()).toBe(5 * 4)
    const { at } = await foldTo(ledger, ids[5] as RunId)
    await applyRetention(ledger, { factsMs: 0 }, { now: at + 1 })
    expect((await Array.fromAsync(ledger.runs())).map(({ runId }) => runId)).toEqual([])
    expect(await pieces()).toBe(0)
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true })
    await ledger.close()
    expect(await holds('said again and again')).toBe(false)
  },

  async 'a run that began with what is gone shows the gap, folds, and the session continues'({ open }) {
    const ledger = open()
    const ids = await chat(ledger, 3)
    await redact(ledger, ids[2] as RunId, 'all', by)
    const carried = await carriedBy(ledger, ids[2] as RunId)
    expect(carried).toMatchObject({ messages: [], missing: 8, removed: { kind: 'redacted' } })
    expect(readMessages((await foldTo(ledger, ids[2] as RunId)).history)).toHaveLength(12)
    expect(await verifyRun(ledger, ids[2] as RunId)).toMatchObject({ ok: true })
    const [next] = await chat(ledger, 1)
    const { messages } = await carriedBy(ledger, next as RunId)
    expect(messages.slice(0, 8)).toEqual(
      messages.slice(0, 8).map(() => ({ role: 'user', parts: [{ type: 'text', text: '[removed]' }] })),
    )
    expect(await verifyRun(ledger, next as RunId)).toMatchObject({ ok: true })
    await ledger.close()
  },

  async 'a session about a subject stores as little, says nothing without the key, and is erased with it'({
    open,
    stored,
    holds,
  }) {
    const keys = sqliteKeyring(temporaryFile('keys.db'))
    const ledger = open({ keys })
    const bytes: number[] = []
    const measure = async (): Promise<unknown> => bytes.push((await stored()).bytes)
    const ids = await chat(ledger, 12, { subject: 'customer 7', behind: measure })
    const grown = (run: number): number => (bytes[run - 1] as number) - (bytes[run - 2] as number)
    expect(Math.abs(grown(12) - grown(5))).toBeLessThan(256)
    const whole = await eventsOf(ledger, ids[11] as RunId)
    await ledger.close()
    expect(await holds('said again and again')).toBe(false)

    const without = open()
    expect(await carriedBy(without, ids[11] as RunId)).toMatchObject({
      messages: [],
      missing: 11 * 4,
      removed: { kind: 'sealed' },
    })
    expect(await storeVerdict(without)).toMatchObject({ ok: true })
    await without.close()

    const again = open({ keys })
    expect(await eventsOf(again, ids[11] as RunId)).toEqual(whole)
    await keys.destroy('customer 7')
    expect(await carriedBy(again, ids[11] as RunId)).toMatchObject({ removed: { kind: 'erased' } })
    expect(JSON.stringify(await eventsOf(again, ids[11] as RunId))).not.toContain('said again')
    expect(await verifyRun(again, ids[11] as RunId)).toMatchObject({ ok: true })
    await again.close()
    keys.close()
  },

  async 'a byte of what runs began with that has changed is found and located, and nobody is shown it'({
    open,
    tamper,
  }) {
    const ledger = open()
    const ids = await chat(ledger, 4)
    await ledger.close()
    for (const change of [
      `update history set message = '"another"' where before is null`,
      `update history set before = null`,
      `update history set digest = 'another' where before is null`,
      `delete from history where before is null`,
    ]) {
      await tamper(`create table saved as select * from history; ${change}`)
      await requireDamage(open(), ids)
      await tamper('delete from history; insert into history select * from saved; drop table saved')
    }
    const sound = open()
    expect(await storeVerdict(sound)).toMatchObject({ ok: true, brokenRuns: 0 })
    await sound.close()
  },
}

type Cost = Readonly<Record<'rows' | 'bytes' | 'events' | 'runs' | 'pieces', number>>

function difference(after: Cost, before: Cost): Cost {
  const each = (name: keyof Cost): number => after[name] - before[name]
  return {
    rows: each('rows'),
    bytes: each('bytes'),
    events: each('events'),
    runs: each('runs'),
    pieces: each('pieces'),
  }
}

async function requireDamage(ledger: Ledger, ids: readonly RunId[]): Promise<void> {
  const verdicts = await Array.fromAsync(verifyLedger(ledger))
  expect(verdicts.at(-1)).toMatchObject({ scope: 'store', ok: false })
  const broken = verdicts.flatMap((verdict) => (verdict.scope === 'run' && !verdict.ok ? [verdict] : []))
  for (const { runId, broken: place } of broken) {
    expect(place).toMatchObject({ seq: 2, what: 'body' })
    await expect(eventsOf(ledger, runId)).rejects.toThrow(LedgerDamagedError)
  }
  expect(ids).toEqual(expect.arrayContaining(broken.map(({ runId }) => runId)))
  await ledger.close()
}
