import { createRuntime, defineAgent, type Agent, type RunResult } from '@tallystick/core'
import { manualClock, scriptedModel, type ScriptedStep } from '@tallystick/testkit'
import { countProjectionLag } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { boss } from './kit/office.ts'
import { callOf, openShop, shopAgent, type Shop } from './kit/shop.ts'
import {
  json,
  tallystickAt,
  tallystickAttended,
  tallystickHere,
  tallystickOnTerminal,
} from './kit/tallystick.ts'

const dayMs = 24 * 60 * 60 * 1000
const now = Date.UTC(2026, 5, 30)
const usage = { inputTokens: 1_000_000, outputTokens: 100_000 }

const agentOf = (name: string, steps: readonly ScriptedStep[], handoffs: readonly Agent[] = []): Agent =>
  defineAgent({
    ...{ name, description: `Is ${name}.`, instructions: '', handoffs },
    model: scriptedModel(steps, `${name}-model`),
  })

const host = (): Agent => agentOf('host', [{ text: 'Hello.', usage }])

/** Drives runs one after the other, some days ago; answers how they ended. */
async function startAll(
  shop: Shop,
  runs: readonly { readonly agent: Agent; readonly daysAgo?: number; readonly sessionId?: string }[],
): Promise<readonly RunResult[]> {
  const ledger = sqliteLedger(shop.ledgerPath)
  const prices = { 'host-model': { inputUsd: 2, outputUsd: 10 } }
  const results: RunResult[] = []
  for (const { agent, daysAgo = 0, ...options } of runs) {
    const runtime = createRuntime({ ledger, prices, host: { clock: manualClock(now - daysAgo * dayMs) } })
    results.push(await runtime.run(agent, 'Go.', options).result)
  }
  await ledger.close()
  return results
}

/** The ids that `list` printed as JSON, a line each. */
async function listed(shop: Shop, ...words: readonly string[]): Promise<readonly string[]> {
  const { code, stdout, stderr } = await tallystickAt(now, 'list', shop.ledgerPath, '--json', ...words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const lines = stdout === '' ? [] : stdout.trimEnd().split('\n')
  return lines.map((line) => (json(line) as { runId: string }).runId)
}

/** Changes the file as an attacker would who wants to falsify it. */
function tamper(shop: Shop, statement: string): void {
  const database = new Database(shop.ledgerPath)
  const { changes } = database.prepare(statement).run()
  database.close()
  if (changes === 0) throw new Error('nothing was changed')
}

describe('list', () => {
  it('tells when a fork began, and how long it took, not those of the run that it was forked from; so does show', async () => {
    await using shop = await openShop()
    const [source] = await startAll(shop, [{ agent: host(), daysAgo: 3 }])
    const ledger = sqliteLedger(shop.ledgerPath)
    const runtime = createRuntime({ ledger, agents: [host()], host: { clock: manualClock(now) } })
    const { runId } = await runtime.fork(source?.runId ?? '', { atSeq: 2, edit: { input: 'Stay.' } }).result
    await ledger.close()
    const { stdout } = await tallystickAt(now, 'list', shop.ledgerPath, '--json')
    const times = { startedAt: new Date(now).toISOString(), lastEventAt: new Date(now).toISOString() }
    const [fork, run] = stdout.trimEnd().split('\n').map(json)
    expect(fork).toMatchObject({ runId, ...times, durationMs: 0 })
    expect(run).toMatchObject({ startedAt: new Date(now - 3 * dayMs).toISOString() })
    const shown = await tallystickAt(now, 'show', shop.ledgerPath, runId, '--json')
    expect(json(shown.stdout)).toMatchObject(times)
    const { stdout: text } = await tallystickAt(now, 'show', shop.ledgerPath, runId, '--events')
    expect(text).toContain(`\nstarted  ${times.startedAt}, last event ${times.startedAt}\ntook     0 ms\n`)
    expect(text.match(/\+\d+ \w+/g)).toEqual(expect.arrayContaining(['+0 ms']))
    expect(text).not.toMatch(/\+\d+ d/)
  })

  it('shows the runs of an agent, those with an event since then, those that failed, and any of these at once', async () => {
    await using shop = await openShop()
    const transfer: ScriptedStep = { toolCalls: [{ name: 'transfer_to_billing', input: { reason: 'x' } }] }
    const billing = agentOf('billing', [{ text: 'I am billing.' }])
    const [old, transferred, failed, billed] = await startAll(shop, [
      { agent: host(), daysAgo: 9 },
      { agent: agentOf('triage', [transfer], [billing]), daysAgo: 5 },
      { agent: agentOf('host', [{ fail: 'authentication' }]), daysAgo: 2 },
      { agent: agentOf('billing', [{ text: 'Yes.' }]) },
    ] as const)
    const idOf = (result: RunResult | undefined): string => result?.runId ?? ''
    expect(await listed(shop, '--agent', 'billing')).toEqual([billed, transferred].map(idOf))
    expect(await listed(shop, '--agent', 'nobody')).toEqual([])
    expect(await listed(shop, '--since', '3d')).toEqual([billed, failed].map(idOf))
    expect(await listed(shop, '--since', '2026-06-25')).toEqual([billed, failed, transferred].map(idOf))
    expect(await listed(shop, '--status', 'failed')).toEqual([failed].map(idOf))
    expect(await listed(shop, '--status', 'done')).toEqual([billed, failed, transferred, old].map(idOf))
    expect(await listed(shop, '--status', 'done', '--agent', 'host', '--since', '8d')).toEqual(
      [failed].map(idOf),
    )
    const none = await tallystickAt(now, 'list', shop.ledgerPath, '--agent', 'triage', '--since', '1d')
    expect(none).toEqual({
      ...{ code: 0, stdout: '' },
      stderr: 'This ledger holds no runs of agent triage with an event since 1d.\n',
    })
    const wrong = await tallystickHere('list', shop.ledgerPath, '--since', 'yesterday')
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('an age such as 12h or 3d') as string,
    })
  })

  it('says on a terminal what to type for runs that wait, which works unchanged', async () => {
    await using shop = await openShop()
    const [waiting] = await startAll(shop, [{ agent: boss() }])
    const { stderr } = await tallystickAttended({}, 'list', shop.ledgerPath)
    const [approval] = waiting?.pendingApprovals ?? []
    const next = `tallystick approve ${shop.ledgerPath} ${approval?.runId} ${approval?.toolCallId} --by you`
    // The root run and its child wait for the same.
    expect(stderr.split(next)).toHaveLength(2)
    const approved = await tallystickHere(...next.split(' ').slice(1), '--json')
    expect(json(approved.stdout)).toMatchObject({ added: true, command: { type: 'approve' } })
    const { stdout } = await tallystickHere(
      'list',
      shop.ledgerPath,
      '--json',
      '--limit',
      '1',
      '--agent',
      'boss',
    )
    expect(json(stdout)).toMatchObject({
      status: 'suspended',
      waits: { approvals: [{ runId: approval?.runId, name: 'pay' }], children: [{ status: 'suspended' }] },
    })
  })

  it('names the limit that a run waits at, and what raises it', async () => {
    await using shop = await openShop()
    const asking = defineAgent({
      ...{ name: 'asking', instructions: '', model: scriptedModel([{ text: 'No.' }]) },
      limits: { maxTurns: 0, onLimit: 'ask' },
    })
    const [{ runId } = { runId: '' }] = await startAll(shop, [{ agent: asking }])
    const { stdout } = await tallystickHere('list', shop.ledgerPath, '--json')
    expect(json(stdout)).toMatchObject({
      detail: 'the limit maxTurns',
      waits: { limit: { limit: 'maxTurns', max: 0 } },
    })
    const stats = await tallystickHere('stats', shop.ledgerPath)
    expect(stats.stdout).toContain(`    tallystick raise ${shop.ledgerPath} ${runId} maxTurns 1 --by you\n`)
  })
})

describe('stats', () => {
  it('tells under each run that waits what continues it, and where the others are', async () => {
    await using shop = await openShop()
    const results = await startAll(
      shop,
      Array.from({ length: 21 }, () => ({ agent: shopAgent() })),
    )
    const { stdout } = await tallystickAt(now, 'stats', shop.ledgerPath)
    const last = results.at(-1)!
    expect(stdout).toContain(
      `suspended on pay ${callOf(last)}\n    tallystick approve ${shop.ledgerPath} ${last.runId} ${callOf(last)} --by you\n`,
    )
    expect(stdout).not.toContain(results[0]!.runId)
    expect(stdout).toContain(`  … all of them: tallystick list ${shop.ledgerPath} --status suspended\n`)
    const forPrograms = json((await tallystickAt(now, 'stats', shop.ledgerPath, '--json')).stdout)
    expect((forPrograms as { suspended: readonly unknown[] }).suspended).toHaveLength(21)
  })

  it('tells costs by day, and what sessions come to', async () => {
    await using shop = await openShop()
    await startAll(shop, [
      { agent: host(), daysAgo: 8, sessionId: 'old' },
      { agent: host(), daysAgo: 2, sessionId: 'ann' },
      { agent: host(), daysAgo: 1, sessionId: 'ann' },
      { agent: host(), daysAgo: 1, sessionId: 'bob' },
    ])
    const byDay = await tallystickAt(now, 'stats', shop.ledgerPath, '--by', 'day')
    expect(byDay.stdout).toMatch(
      /^ {2}2026-06-29 +host +scripted host-model +2 +2000000 +200000 +\$6\.0000$/m,
    )
    expect(byDay.stdout).toMatch(
      /^ {2}2026-06-28 +host +scripted host-model +1 +1000000 +100000 +\$3\.0000$/m,
    )
    expect(byDay.stdout).not.toContain('2026-06-22')
    const days = json((await tallystickAt(now, 'stats', shop.ledgerPath, '--by', 'day', '--json')).stdout)
    expect(days).toMatchObject({
      byDay: [{ day: '2026-06-29', calls: 2, costUsd: 6 }, { day: '2026-06-28' }],
    })
    const bySession = await tallystickAt(now, 'stats', shop.ledgerPath, '--by', 'session')
    expect(bySession.stdout).toMatch(
      /^ {2}ann +2 +2 +0 +2000000 +200000 +2026-06-29T00:00:00\.000Z +\$6\.0000\n {2}bob +1 /m,
    )
    expect(bySession.stdout).not.toMatch(/^ {2}old /m)
    const sessions = json(
      (await tallystickAt(now, 'stats', shop.ledgerPath, '--by', 'session', '--json')).stdout,
    )
    expect(sessions).toMatchObject({
      bySession: [{ sessionId: 'ann', runs: 2, costUsd: 6 }, { sessionId: 'bob' }],
    })
  })

  it('keeps what it has folded where that was much, and folds no more than what is new from then on', async () => {
    await using shop = await openShop()
    const lag = async (): Promise<number | undefined> => {
      const ledger = sqliteLedger(shop.ledgerPath, { readOnly: true })
      const lag = await countProjectionLag(ledger)
      await ledger.close()
      return lag
    }
    await startAll(
      shop,
      Array.from({ length: 10 }, () => ({ agent: host() })),
    )
    const few = (await lag()) ?? 0
    await tallystickHere('stats', shop.ledgerPath)
    expect(await lag()).toBe(few)
    await startAll(
      shop,
      Array.from({ length: Math.ceil(20_000 / few) }, () => ({ agent: host() })),
    )
    const before = await tallystickAt(now, 'stats', shop.ledgerPath, '--json')
    expect(await lag()).toBe(0)
    expect(await tallystickAt(now, 'stats', shop.ledgerPath, '--json')).toEqual(before)
    await startAll(shop, [{ agent: host() }])
    const { stderr } = await tallystickOnTerminal('stats', shop.ledgerPath)
    expect(stderr).toContain(`\r\u001B[K${few / 10} of ${few / 10} events`)
  })
})

describe('rebuild', () => {
  it('mends what was changed of what follows from the events, which verify finds', async () => {
    await using shop = await openShop()
    const [{ runId } = { runId: '' }] = await startAll(shop, [{ agent: host() }])
    const rebuild = `tallystick rebuild ${shop.ledgerPath}`
    expect((await tallystickHere('rebuild', shop.ledgerPath)).stdout).toMatch(
      /^rebuilt from \d+ events of 1 run\n$/,
    )
    const before = await tallystickAt(now, 'stats', shop.ledgerPath, '--json')
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)

    tamper(shop, `update run_summary set summary = replace(summary, 'host', 'boss')`)
    const differing = await tallystickHere('verify', shop.ledgerPath)
    expect(differing.code).toBe(1)
    expect(differing.stdout).toContain(
      `; projection of run ${runId} differs: should be its summary as its events say`,
    )
    expect(differing.stderr).toContain(`This derives it anew:\n  ${rebuild}\n`)
    const forPrograms = await tallystickHere('verify', shop.ledgerPath, '--json')
    expect(forPrograms.code).toBe(1)
    expect(forPrograms.stdout.trimEnd().split('\n').map(json)).toMatchObject([
      { scope: 'run', ok: true, differs: { what: 'projection' } },
      { scope: 'store', ok: true, differingRuns: 1 },
    ])

    const rebuilt = await tallystickHere(...rebuild.split(' ').slice(1), '--json')
    expect(json(rebuilt.stdout)).toMatchObject({ runs: 1 })
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
    expect(await tallystickAt(now, 'stats', shop.ledgerPath, '--json')).toEqual(before)
  })

  it('says how far it is on a terminal, and of a ledger that is not there that it is not', async () => {
    await using shop = await openShop()
    await startAll(shop, [{ agent: host() }, { agent: host() }])
    const { code, stderr } = await tallystickOnTerminal('rebuild', shop.ledgerPath)
    expect(code).toBe(0)
    expect(stderr).toMatch(/(\d+) of \1 events/)
    expect(stderr.endsWith('\r\u001B[K')).toBe(true)
    expect((await tallystickHere('rebuild', `${shop.ledgerPath}.none`)).code).toBe(5)
  })
})
