import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryLedger, type Ledger, type RunId } from '@tallystick/core'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/testkit'
import { firstInputs } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { databaseOf } from '../src/store/store.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import { isRunId } from '../src/format/event-row.ts'
import { forgeRun } from './support/forged-ledger.ts'
import { lendWith, watchedDatabase } from './support/lent-store.ts'
import { tamper } from './support/raw-database.ts'

let folder: string
let files = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tallystick-inputs-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Records runs that begin with these texts; one without a text has no input yet. */
async function record(ledger: Ledger, texts: readonly (string | undefined)[]): Promise<readonly RunId[]> {
  const runIds = texts.map((_, index) => sampleRunId(index + 1))
  for (const [index, said] of texts.entries()) {
    const runId = runIds[index] as RunId
    const { run_started, input_received: input } = everyFact(runId)
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
    const inputs = said === undefined ? [] : [said, 'and then?']
    const facts = [start, ...inputs.map((each) => ({ ...input, message: sampleMessage(each) }))]
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stamped(runId, facts), { durability: 'lazy' })
  }
  return runIds
}

/** A ledger on disk with such runs, and how its file is changed while it is closed. */
async function stored(
  texts: readonly (string | undefined)[],
  spoil: (path: string, runIds: readonly RunId[]) => void = () => {},
): Promise<{ readonly ledger: Ledger; readonly runIds: readonly RunId[] }> {
  const path = join(folder, `${++files}.db`)
  const first = sqliteLedger(path)
  const runIds = await record(first, texts)
  await first.close()
  spoil(path, runIds)
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  return { ledger, runIds }
}

/** What each run begins with, by its id. */
async function found(ledger: Ledger, runIds: readonly RunId[]): Promise<Readonly<Record<string, string>>> {
  const inputs = await firstInputs(ledger, runIds)
  return Object.fromEntries(
    [...inputs].map(([runId, { message }]) => [
      runId,
      message.parts.map((part) => (part.type === 'text' ? part.text : part.type)).join(),
    ]),
  )
}

/** Counts what is looked up for many runs at once, and the runs that are searched one by one. */
function watched(ledger: Ledger): { readonly looked: number[]; readonly searched: (string | undefined)[] } {
  const looked: number[] = []
  const searched: (string | undefined)[] = []
  const database = databaseOf(ledger)
  const find = ledger.find.bind(ledger)
  Object.assign(ledger, {
    find: (...given: Parameters<typeof find>) => (searched.push(given[0]?.runId), find(...given)),
  })
  if (database) {
    lendWith(ledger, {
      database: watchedDatabase(database, ({ values }) => {
        looked.push(values.filter(isRunId).length)
      }),
    })
  }
  return { looked, searched }
}

describe('the first inputs of runs', () => {
  it('given runs on disk, when asked for, then they are looked up 64 runs at a time, and no run is searched', async () => {
    const texts = Array.from({ length: 130 }, (_, index) => `question ${index + 1}`)
    const { ledger, runIds } = await stored(texts)
    const { looked, searched } = watched(ledger)
    expect(await found(ledger, runIds)).toEqual(
      Object.fromEntries(runIds.map((runId, index) => [runId, texts[index]])),
    )
    expect({ looked, searched }).toEqual({ looked: [64, 64, 2], searched: [] })
    expect(await found(ledger, [])).toEqual({})
    expect(looked).toHaveLength(3)
  })

  it('given runs in memory, when asked for, then each run is searched', async () => {
    const ledger = memoryLedger()
    const runIds = await record(ledger, ['one', undefined, 'three'])
    const { searched } = watched(ledger)
    expect(await found(ledger, runIds)).toEqual({
      [runIds[0] as RunId]: 'one',
      [runIds[2] as RunId]: 'three',
    })
    expect(searched).toEqual(runIds)
  })

  it('given a run without an input, when asked for, then it is left out', async () => {
    const { ledger, runIds } = await stored(['one', undefined])
    expect(await found(ledger, runIds)).toEqual({ [runIds[0] as RunId]: 'one' })
  })

  it('given an input that was changed, when asked for, then that run is left out, and no later input stands for it', async () => {
    const { ledger, runIds } = await stored(['one', 'two'], (path, [first]) => {
      tamper(path, (database) => {
        database.exec(`update event set body = '{}' where run_id = '${first}' and seq = 2`)
      })
    })
    const { searched } = watched(ledger)
    expect(await found(ledger, runIds)).toEqual({ [runIds[1] as RunId]: 'two' })
    expect(searched).toEqual([])
  })

  it('given an input of forged bytes that are no JSON, when asked for, then that run is left out', async () => {
    const { ledger, runIds } = await stored(['one', 'two'], (path, [first]) => {
      forgeRun(path, first as RunId, (event) =>
        event.type === 'input_received' ? { ...event, text: '{"message":' } : event,
      )
    })
    const { searched } = watched(ledger)
    expect(await found(ledger, runIds)).toEqual({ [runIds[1] as RunId]: 'two' })
    expect(searched).toEqual([])
  })

  it('given a store that cannot look up, when asked for, then each run is searched; a fault in the code is thrown', async () => {
    const { ledger, runIds } = await stored(['one', 'two'])
    const database = databaseOf(ledger)
    const { searched } = watched(ledger)
    const closed = sqliteLedger(join(folder, `${++files}.db`))
    const lent = databaseOf(closed)
    await closed.close()
    const queryClosed: StoreDatabase['query'] = (...asked) => lent!.query(...asked)
    lendWith(ledger, { database: { ...database, query: queryClosed } as StoreDatabase })
    expect(Object.values(await found(ledger, runIds))).toEqual(['one', 'two'])
    expect(searched).toEqual(runIds)
    const query = (): Promise<never> => Promise.reject(new TypeError('no such function'))
    lendWith(ledger, { database: { ...database, query } as StoreDatabase })
    await expect(firstInputs(ledger, runIds)).rejects.toThrow('no such function')
  })
})
