import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { readRecord, redact } from '@tallystick/ledger'
import { RecordCheck, type RecordRow } from '@tallystick/ledger/record'
import { sqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it } from 'vitest'
import { hashPortably, hashText } from '../src/format/sha256.ts'
import { eventsOf, play } from './support/removal-bed.ts'
import { temporaryFile } from './support/temporary-folder.ts'

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
