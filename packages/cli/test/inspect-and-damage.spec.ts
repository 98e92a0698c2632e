import { createHash } from 'node:crypto'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunResult, RuntimeEvent } from '@tallystick/core'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Shop } from './kit/shop.ts'
import { callOf, openShop, shopConfig } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

/** Changes one event of a run by a statement, past the rules of the database. */
function change(ledgerPath: string, statement: string, runId: string, seq: number): void {
  const database = new Database(ledgerPath)
  const triggers = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    .pluck()
    .all() as string[]
  for (const name of triggers) database.exec(`DROP TRIGGER "${name}"`)
  const { changes } = database.prepare(`${statement} WHERE run_id = ? AND seq = ?`).run(runId, seq)
  database.close()
  if (changes !== 1) throw new Error('nothing was changed')
}

/** Changes one letter of what a run's third event says; answers its `seq`. */
function tamper(ledgerPath: string, runId: string): number {
  const seq = 3
  change(ledgerPath, `UPDATE event SET body = replace(body, 'e', 'a')`, runId, seq)
  return seq
}

/** The files of a folder by name, with their digests. */
async function contents(folder: string): Promise<Record<string, string>> {
  const digests: Record<string, string> = {}
  for (const name of await readdir(folder)) {
    digests[name] = createHash('sha256')
      .update(await readFile(join(folder, name)))
      .digest('hex')
  }
  return digests
}

describe.concurrent('a ledger with two runs that wait', () => {
  let shop: Shop
  let older: RunResult
  let newer: RunResult
  beforeAll(async () => {
    shop = await openShop()
    older = await shop.start()
    newer = await shop.start()
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  it('is listed with a line a run, the newest first', async () => {
    const { code, stdout, stderr } = await tallystickHere('list', shop.ledgerPath)
    const lines = stdout.trimEnd().split('\n')
    expect({ code, stderr, count: lines.length }).toEqual({ code: 0, stderr: '', count: 3 })
    expect(lines[0]).toMatch(/^RUN +AGENT +TURNS +CALLS +TOKENS +COST +TOOK +STARTED +INPUT +WORST +STATUS$/)
    expect(lines[1]).toMatch(
      new RegExp(
        `^${newer.runId} +shopper +2 +1 +\\d+ +- +[\\d.]+ m?s +\\d{4}-\\S+Z +\\S.* +suspended on pay ${callOf(newer)}$`,
      ),
    )
    expect(lines[2]).toContain(older.runId)
  })

  it('is listed for programs with an object a line', async () => {
    const { stdout } = await tallystickHere('list', shop.ledgerPath, '--json')
    const runs = stdout.trimEnd().split('\n').map(json)
    expect(runs).toMatchObject([
      { runId: newer.runId, agent: 'shopper', status: 'suspended', turns: 2, toolCalls: 1, seq: newer.seq },
      { runId: older.runId },
    ])
  })

  it('shows a run with its tally, what waits, and both halves of each call under one id', async () => {
    const { code, stdout } = await tallystickHere('show', shop.ledgerPath, 'latest')
    const call = callOf(newer)
    const lookCall = call.replace(/_2_1_1$/, '_1_1_1')
    expect(code).toBe(0)
    expect(stdout).toContain(`status   suspended on pay ${call}\n`)
    expect(stdout).toContain(`tally    2 requests, 1 result, 1 open (${call})\n`)
    expect(stdout).toContain(`waiting  pay ${call} {"usd":5}\n`)
    expect(stdout).toMatch(
      new RegExp(
        `┌ request look ${lookCall}\n +\\{"at":"tea"\\}\n[^]*└ result  look ${lookCall} success in \\d+ ms, event 10\n +"tea" for 5 USD\n`,
      ),
    )
  })

  it('shows a run as it was at an earlier event', async () => {
    const { stdout } = await tallystickHere('show', shop.ledgerPath, older.runId, '--at', '2', '--json')
    expect(json(stdout)).toMatchObject({
      ...{ runId: older.runId, phase: 'idle', seq: 2, maxSeq: older.seq, turns: 0 },
      tally: { requests: 0, results: 0, open: [] },
      messages: [{ role: 'user', parts: [{ type: 'text', text: 'Buy tea.' }] }],
    })
  })

  it('shows the very request of an event, and says whether it was in flight there', async () => {
    const { stdout: exported } = await tallystickHere('export', shop.ledgerPath, '--run', older.runId)
    const calls = (exported.trimEnd().split('\n').map(json) as RuntimeEvent[]).flatMap((event) =>
      event.type === 'model_call_started' ? [event] : [],
    )
    const [, { seq, requestDigest } = { seq: 0, requestDigest: '' }] = calls
    const show = ['show', shop.ledgerPath, older.runId, '--at']
    const sent = await tallystickHere(...show, `${seq}`, '--request')
    expect(sent.stdout).toContain('status   under way: the model call of turn 2\n')
    expect(sent.stdout).toContain(`now      suspended on pay ${callOf(older)}\n`)
    const [, body = ''] = sent.stdout.split(`\nSent to scripted scripted-1, digest ${requestDigest}:\n`)
    const roles = [{ role: 'user' }, { role: 'assistant' }, { role: 'tool', results: [{ name: 'look' }] }]
    expect(json(body)).toMatchObject({
      instructions: 'Buy tea.',
      messages: roles,
      toolChoice: { type: 'auto' },
    })
    const asData = await tallystickHere(...show, `${seq}`, '--json')
    expect(json(asData.stdout)).toMatchObject({ request: { requestDigest, request: json(body) as object } })
    const before = await tallystickHere(...show, `${seq - 1}`, '--request')
    const [, due = ''] = before.stdout.split(
      /\nNo model call is under way at this event\. One to scripted scripted-1 .*:\n/,
    )
    expect(json(due)).toEqual(json(body))
  })

  it('shows its events, one a line, under the numbers that --at takes', async () => {
    const { stdout } = await tallystickHere('show', shop.ledgerPath, older.runId, '--events')
    const lines = stdout
      .trimEnd()
      .split('\n')
      .slice(stdout.split('\n').indexOf('') + 1)
    expect(lines[0]).toMatch(/^ 1 {2}\+0 ms +run_started shopper$/)
    expect(lines[1]).toMatch(/^ 2 {2}\+\d+ ms +input_received Buy tea\.$/)
    expect(lines.at(-1)).toMatch(new RegExp(`^${older.seq}  \\+\\S+ m?s +turn 2    approval_requested pay$`))
    expect(lines.join('\n')).not.toContain('delta')
    const before = await tallystickHere('show', shop.ledgerPath, older.runId, '--events', '--at', '2')
    expect(before.stdout).toMatch(
      /\n\n1 {2}\+0 ms +run_started shopper\n2 {2}\+\d+ ms +input_received Buy tea\.\n$/,
    )
    expect(await tallystickHere('show', shop.ledgerPath, older.runId, '--events', '--json')).toMatchObject({
      code: 2,
    })
  })

  it('finds a run by the end of its id, and asks for more where several fit', async () => {
    const ending = older.runId.slice(-8)
    expect(json((await tallystickHere('show', shop.ledgerPath, ending, '--json')).stdout)).toMatchObject({
      runId: older.runId,
    })
    const ambiguous = await tallystickHere('show', shop.ledgerPath, older.runId.slice(0, 4))
    expect(ambiguous).toMatchObject({ code: 2, stdout: '' })
    expect(ambiguous.stderr).toContain(`matches 2 runs (${newer.runId}, ${older.runId})`)
    expect(ambiguous.stderr).toContain(`tallystick list ${shop.ledgerPath}`)
  })

  it('is exported event by event, of one run or of all', async () => {
    const one = await tallystickHere('export', shop.ledgerPath, '--run', older.runId)
    const events = one.stdout.trimEnd().split('\n').map(json) as {
      runId: string
      seq: number
      type: string
    }[]
    expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: older.seq }, (_, place) => place + 1))
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['run_started', 'tool_result', 'approval_requested']),
    )
    const all = await tallystickHere('export', shop.ledgerPath)
    expect(all.stdout.trimEnd().split('\n')).toHaveLength(older.seq + newer.seq)
    expect(all.stdout).toContain(one.stdout)
  })

  it('verifies, run by run', async () => {
    const { code, stdout } = await tallystickHere('verify', shop.ledgerPath)
    expect(code).toBe(0)
    for (const { runId, seq } of [older, newer])
      expect(stdout).toMatch(new RegExp(`^${runId} .*\\b${seq} events`, 'm'))
  })
})

describe('a ledger that was tampered with', () => {
  it('is a 4, with the place of the damage', async () => {
    await using shop = await openShop()
    const [sound, damaged] = [await shop.start(), await shop.start()]
    const changed = tamper(shop.ledgerPath, damaged.runId)
    const { code, stdout, stderr } = await tallystickHere('verify', shop.ledgerPath)
    expect(code).toBe(4)
    expect(stdout).toMatch(new RegExp(`^${sound.runId}  ok  ${sound.seq} events$`, 'm'))
    expect(stdout).toMatch(new RegExp(`^${damaged.runId}  DAMAGED  at event ${changed}: `, 'm'))
    expect(stdout).toMatch(/^ledger  DAMAGED  /m)
    expect(stderr).toContain(`  tallystick show ${shop.ledgerPath} ${damaged.runId} --at ${changed - 1}\n`)
    expect(stderr).toContain(`  tallystick export ${shop.ledgerPath} > sound.jsonl\n`)
    expect(stderr).toContain('  tallystick import sound.db sound.jsonl\n')
    const before = await tallystickHere('show', shop.ledgerPath, damaged.runId, '--at', `${changed - 1}`)
    expect(before).toMatchObject({ code: 0, stderr: '' })
    const one = await tallystickHere('verify', shop.ledgerPath, '--run', sound.runId)
    expect(one).toMatchObject({ code: 0, stdout: `${sound.runId}  ok  ${sound.seq} events\n` })
    expect((await tallystickHere('verify', shop.ledgerPath, '--run', damaged.runId)).code).toBe(4)
    expect((await tallystickHere('verify', shop.ledgerPath, '--run', 'nobody')).code).toBe(5)
    const forPrograms = await tallystickHere('verify', shop.ledgerPath, '--json')
    expect(forPrograms.code).toBe(4)
    expect(forPrograms.stdout.trimEnd().split('\n').map(json)).toMatchObject([
      { scope: 'run', runId: damaged.runId, ok: false, events: changed - 1, broken: { seq: changed } },
      { scope: 'run', runId: sound.runId, ok: true, events: sound.seq },
      { scope: 'store', ok: false, runs: 2, brokenRuns: 1 },
    ])
  })

  it('given a run without its last event, then it is shown after the event before', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    change(shop.ledgerPath, 'DELETE FROM event', runId, seq)
    const last = seq - 1
    const { code, stdout, stderr } = await tallystickHere('verify', shop.ledgerPath)
    expect({ code, stdout }).toEqual({ code: 4, stdout: expect.stringContaining(`at event ${last}: `) })
    expect(stderr).toContain(`  tallystick show ${shop.ledgerPath} ${runId} --at ${last}\n`)
    const shown = await tallystickHere('show', shop.ledgerPath, runId, '--at', `${last}`)
    expect(shown).toMatchObject({ code: 0, stderr: '' })
  })

  it('still shows and exports the untouched runs, and what comes before the damage', async () => {
    await using shop = await openShop()
    const [sound, damaged] = [await shop.start(), await shop.start()]
    const changed = tamper(shop.ledgerPath, damaged.runId)
    const named = expect.stringContaining(`Run ${damaged.runId} is damaged at seq ${changed}`)
    const listed = await tallystickHere('list', shop.ledgerPath)
    expect({ code: listed.code, stderr: listed.stderr }).toEqual({ code: 4, stderr: named })
    expect(listed.stdout).toMatch(new RegExp(`^${damaged.runId}( +\\?){7} +unreadable$`, 'm'))
    expect(listed.stdout).toMatch(new RegExp(`^${sound.runId} +shopper .* suspended on pay `, 'm'))
    const forPrograms = await tallystickHere('list', shop.ledgerPath, '--json')
    expect(forPrograms.stdout.trimEnd().split('\n').map(json)).toMatchObject([
      { runId: damaged.runId, status: 'unreadable', detail: named },
      { runId: sound.runId, status: 'suspended' },
    ])
    expect(json(forPrograms.stderr)).toEqual({
      error: { code: 'ledger_damaged', exitCode: 4, message: named },
    })
    const totals = await tallystickHere('stats', shop.ledgerPath)
    expect({ code: totals.code, stderr: totals.stderr }).toEqual({ code: 4, stderr: named })
    const exported = await tallystickHere('export', shop.ledgerPath)
    expect({ code: exported.code, stderr: exported.stderr }).toEqual({ code: 4, stderr: named })
    const lines = exported.stdout.trimEnd().split('\n').map(json) as { runId: string }[]
    const ofRun = (run: RunResult): number => lines.filter(({ runId }) => runId === run.runId).length
    expect([ofRun(damaged), ofRun(sound)]).toEqual([changed - 1, sound.seq])
  })
})

describe('looking', () => {
  it('changes no byte of the ledger, and makes no file beside it', async () => {
    await using shop = await openShop()
    await shop.start()
    const before = await contents(shop.folder)
    for (const verb of ['list', 'verify', 'export'])
      expect(await tallystickHere(verb, shop.ledgerPath)).toMatchObject({ code: 0 })
    expect(await tallystickHere('show', shop.ledgerPath, 'latest')).toMatchObject({ code: 0 })
    expect(await contents(shop.folder)).toEqual(before)
  })
})

describe('replay', () => {
  it('drives a run again from its record, without a model call, and finds what today would be otherwise', async () => {
    await using shop = await openShop()
    await shop.start()
    const done = await tallystickHere(
      'resume',
      shop.ledgerPath,
      'latest',
      '--yes',
      '--json',
      '--config',
      shopConfig,
    )
    const { runId } = json(done.stdout) as RunResult
    const alike = await tallystickHere('replay', shop.ledgerPath, runId, '--config', shopConfig)
    expect(alike.code).toBe(0)
    expect(alike.stdout).toMatch(new RegExp(`^${runId}  \\d+ events happened again as recorded\n$`))

    const changed = join(shop.folder, 'changed.config.mjs')
    const kit = import.meta.resolve('./kit/shop.ts')
    await writeFile(
      changed,
      `import { shopAgent } from '${kit}'\nexport default { agents: [shopAgent('Buy coffee.')] }`,
    )
    const differs = await tallystickHere('replay', shop.ledgerPath, runId, '--config', changed)
    expect(differs.code).toBe(3)
    expect(differs.stdout).toContain('event 1, before the first turn: run_started shopper\n')
    expect(differs.stdout).toContain(
      '  definition.instructions\n    recorded "Buy tea."\n    happened "Buy coffee."\n',
    )
    const forPrograms = await tallystickHere('replay', shop.ledgerPath, runId, '--json', '--config', changed)
    expect(json(forPrograms.stdout)).toMatchObject({ runId, events: 0, divergence: { seq: 1 } })
  })
})
