import { createRuntime, defineAgent, type RunId } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { foldTo, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3, { type Database, type Statement } from 'better-sqlite3'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { emptyLedgerFile } from './support/temporary-folder.ts'

afterEach(() => void vi.restoreAllMocks())

/** The statements that are carried out while something is done, as they were prepared. */
async function statementsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  const used = new Set<string>()
  const probe = new BetterSqlite3(':memory:')
  onTestFinished(() => void probe.close())
  const prototype = Object.getPrototypeOf(probe.prepare('select 1')) as Statement
  for (const member of ['run', 'get', 'all', 'iterate'] as const) {
    const real = prototype[member] as (...given: unknown[]) => unknown
    vi.spyOn(prototype, member).mockImplementation(function (this: Statement, ...given: unknown[]) {
      used.add(this.source)
      return real.apply(this, given) as never
    })
  }
  await work()
  vi.restoreAllMocks()
  return [...used]
}

/** How SQLite goes about a statement. */
function planOf(database: Database, statement: string): readonly string[] {
  return database
    .prepare<[], { detail: string }>(`explain query plan ${statement.replaceAll(/\?(?!\d)|\$\d+/g, 'null')}`)
    .all()
    .map(({ detail }) => detail)
}

/** Tables that grow with a ledger. */
const growing = ['event', 'run', 'inbox', 'history', 'removal', 'snapshot']

async function ledgerFile(): Promise<{ readonly path: string; readonly runId: RunId }> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  const agent = defineAgent({ name: 'a', instructions: 'Answer.', model: scriptedModel([{ text: 'Well.' }]) })
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Well?').result
  await ledger.close()
  return { path, runId }
}

describe('the statements by which a ledger is opened and a run folded', () => {
  it.each([false, true])(
    'look things up and go through no table, whether readOnly is %s',
    async (readOnly) => {
      const { path, runId } = await ledgerFile()
      const statements = await statementsOf(async () => {
        const ledger = sqliteLedger(path, { readOnly })
        onTestFinished(() => ledger.close())
        expect((await foldTo(ledger, runId)).phase).toBe('done')
      })
      const asked = statements.filter((statement) =>
        new RegExp(`\\b(from|into|update) (${growing.join('|')})\\b`).test(statement),
      )
      expect(asked.some((statement) => statement.includes('from event'))).toBe(true)
      const database = new BetterSqlite3(path, { readonly: true })
      onTestFinished(() => void database.close())
      const plans = asked.flatMap((statement) => planOf(database, statement))
      expect(plans.length).toBeGreaterThanOrEqual(2)
      for (const step of plans)
        expect(step).toMatch(/^SEARCH \w+ USING (INTEGER PRIMARY KEY|PRIMARY KEY|(COVERING )?INDEX)/)
    },
  )

  it('would be found if they went through a table', async () => {
    const { path } = await ledgerFile()
    const database = new BetterSqlite3(path, { readonly: true })
    onTestFinished(() => void database.close())
    expect(planOf(database, 'select count(*) from event where v = ?')).toEqual(['SCAN event'])
  })
})

describe('the statement by which verify finds removals of no event', () => {
  it('looks for dropped runs once, and not for each removal', async () => {
    const { path } = await ledgerFile()
    const statements = await statementsOf(async () => {
      const ledger = sqliteLedger(path)
      onTestFinished(() => ledger.close())
      expect(await Array.fromAsync(verifyLedger(ledger))).toMatchObject([{ ok: true }, { ok: true }])
    })
    const statement = statements.find((text) => text.includes('"removal" as "dropped"')) ?? ''
    const database = new BetterSqlite3(path, { readonly: true })
    onTestFinished(() => void database.close())
    const plan = planOf(database, statement)
    const place = plan.indexOf('SCAN dropped')
    expect(plan[place - 1]).toMatch(/^LIST SUBQUERY/)
  })
})

describe('a search of all runs for calls that wait, or for schedules', () => {
  it.each(['tool_deferred', 'schedule_set'] as const)('goes through the index of %s', async (type) => {
    const { path } = await ledgerFile()
    const statements = await statementsOf(async () => {
      const ledger = sqliteLedger(path)
      onTestFinished(() => ledger.close())
      expect(await Array.fromAsync(ledger.find({ types: [type] }))).toEqual([])
    })
    const database = new BetterSqlite3(path, { readonly: true })
    onTestFinished(() => void database.close())
    const [plan] = statements
      .filter((text) => text.includes('previous'))
      .map((text) => planOf(database, text))
    expect(plan).toEqual([
      'SEARCH event USING INDEX event_rare (type=? AND pos>? AND pos<?)',
      expect.stringMatching(/^SEARCH previous USING INDEX/),
    ])
  })
})

describe('a look at what is due', () => {
  it('goes through the index of due runs alone, from the run after which it goes on', async () => {
    const { path, runId } = await ledgerFile()
    const statements = await statementsOf(async () => {
      const ledger = sqliteLedger(path)
      onTestFinished(() => ledger.close())
      const due = await Array.fromAsync(ledger.due({ before: Infinity, after: { runId, dueAt: 0 } }))
      expect(due).toEqual([])
    })
    const database = new BetterSqlite3(path, { readonly: true })
    onTestFinished(() => void database.close())
    const plans = statements.filter((text) => text.includes('due_at')).map((text) => planOf(database, text))
    expect(plans).toEqual([
      ['SEARCH run USING INDEX run_due (due_at=? AND rowid>?)'],
      ['SEARCH run USING INDEX run_due (due_at>? AND due_at<?)'],
    ])
  })

  it('and the release of a run looks up what came in and its children', async () => {
    const { path, runId } = await ledgerFile()
    const statements = await statementsOf(async () => {
      const ledger = sqliteLedger(path)
      onTestFinished(() => ledger.close())
      await ledger.release(runId, 'me', { children: [runId] })
    })
    const database = new BetterSqlite3(path, { readonly: true })
    onTestFinished(() => void database.close())
    const [plan] = statements.filter((text) => text.includes('due_at')).map((text) => planOf(database, text))
    expect(plan?.filter((step) => / (run|child|inbox) /.test(step))).toEqual([
      'SEARCH run USING INDEX sqlite_autoindex_run_1 (run_id=?)',
      'SEARCH inbox USING INDEX inbox_open (run_id=?)',
      'SEARCH child USING INDEX sqlite_autoindex_run_1 (run_id=?)',
    ])
  })
})

describe('the triggers that let only dropped runs go', () => {
  it('find the drop at once, however many removals the run has', async () => {
    const { path } = await ledgerFile()
    const database = new BetterSqlite3(path, { readonly: true })
    onTestFinished(() => void database.close())
    const asked = `select 1 from removal where run_id = 'x' and kind = 'dropped'`
    expect(planOf(database, asked)).toEqual([
      'SEARCH removal USING COVERING INDEX removal_dropped (run_id=?)',
    ])
  })
})
