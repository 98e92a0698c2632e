import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRuntime, defineAgent, joinText, type Agent, type Ledger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel } from '@tallystick/testkit'
import { afterEach, describe, expect, it, vi, onTestFinished } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { verifyRun } from '../src/index.ts'
import { onAsk } from './support/lent-store.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { countedRows, keptTables, type SessionBed } from './support/session-bed.ts'
import { sessionCases } from './support/session-cases.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

describe('sessions in a ledger file', () => {
  afterEach(() => void vi.restoreAllMocks())

  function bed(): SessionBed {
    const path = emptyLedgerFile()
    let piecesRead = 0
    return {
      runsMany: effort({ quick: 60, thorough: 200 }),
      open: (options) => {
        const ledger = sqliteLedger(path, options)
        onAsk(ledger, (text) => (piecesRead += text.includes('from @.history') ? 1 : 0))
        return ledger
      },
      tamper: (statement) => {
        tamper(path, (database) => void database.exec(statement))
        return Promise.resolve()
      },
      // By another process: closing the file in this one would drop the locks of its ledger.
      holds: async (bytes) => {
        const files = [path, `${path}-wal`].filter((file) => existsSync(file))
        return spawnSync('grep', ['-q', '-a', '-F', bytes, ...files]).status === 0
      },
      stored: () => Promise.resolve(withRaw(path, (database) => storedIn(database))),
      pieces: () =>
        Promise.resolve(
          withRaw(
            path,
            (database) => database.prepare<[], number>('select count(*) from history').pluck().get() ?? 0,
          ),
        ),
      piecesRead: () => piecesRead,
    }
  }

  function storedIn(database: Parameters<Parameters<typeof withRaw>[1]>[0]): { rows: number; bytes: number } {
    const sum = { rows: 0, bytes: 0 }
    for (const table of keptTables) {
      for (const row of database
        .prepare<[], Record<string, unknown>>(`select * from ${countedRows(table)}`)
        .iterate()) {
        sum.rows++
        for (const value of Object.values(row)) {
          if (typeof value === 'string' || value instanceof Uint8Array) sum.bytes += value.length
          else if (value !== null) sum.bytes += 8
        }
      }
    }
    return sum
  }

  it.each(Object.entries(sessionCases))('%s', async (_claim, keeps) => {
    await expect(keeps(bed())).resolves.toBeUndefined()
  })
})

function open(path: string): Ledger {
  const ledger = sqliteLedger(path, { pollIntervalMs: 5 })
  onTestFinished(() => ledger.close())
  return ledger
}

const sessionId = 'chat'
const agentOf = (model: ReturnType<typeof scriptedModel>): Agent =>
  defineAgent({ name: 'clerk', instructions: 'Answer.', model, limits: { maxTurns: 1, onLimit: 'stop' } })

it('input of one process that the run of another ends without showing begins the next run of the session', async () => {
  const path = emptyLedgerFile()
  const [first, second] = [open(path), open(path)]
  let end = (): void => {}
  const until = new Promise<void>((resolve) => (end = resolve))
  const [theirs, ours] = [
    agentOf(scriptedModel([{ text: 'One.', until }])),
    agentOf(scriptedModel([{ text: 'Two.' }])),
  ]
  const run = createRuntime({ ledger: first, agents: [theirs] }).run(theirs, 'First.', { sessionId })
  await new Promise((resolve) => run.events$.subscribe(resolve))
  const session = createRuntime({ ledger: second, agents: [ours] }).session(sessionId)
  const taken = new Promise<void>((resolve) => {
    run.events$.subscribe((event) => {
      if (event.type === 'input_received' && event.delivery === 'steer') resolve()
    })
  })
  const joining = session.run(ours, 'Second.', { whenBusy: 'join', inputId: 'message 2' })
  await taken
  end()
  const joined = await joining
  expect(joined.id).not.toBe(run.id)
  expect(await joined.result).toMatchObject({ reason: 'answered', text: 'Two.' })
  expect(await run.result).toMatchObject({ reason: 'answered', text: 'One.' })
  const settled = (await Array.fromAsync(first.read(run.id))).filter(({ type }) => type === 'input_settled')
  expect(settled).toMatchObject([{ receipt: 'message 2', delivered: false }])
  const retried = await session.run(ours, 'Second.', { whenBusy: 'join', inputId: 'message 2' })
  expect(retried.id).toBe(joined.id)
  const { messages = [] } = (await session.history()) ?? {}
  const said = messages.flatMap((message) => (message.role === 'user' ? [joinText(message.parts)] : []))
  expect(said).toEqual(['First.', 'Second.'])
  for (const { id } of [run, joined]) expect(await verifyRun(first, id)).toMatchObject({ ok: true })
})
