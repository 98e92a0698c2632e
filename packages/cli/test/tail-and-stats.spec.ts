import { readdir } from 'node:fs/promises'
import { createRuntime, defineAgent, type Agent, type RunResult, type RuntimeEvent } from '@tallystick/core'
import { extractRunId, type TailedEvent } from '@tallystick/core/vocabulary'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { manualClock, scriptedModel } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { tailAll } from '../src/verbs/tail.ts'
import { boss, officeConfig } from './kit/office.ts'
import { callOf, openShop, shopAgent, type Shop } from './kit/shop.ts'
import { json, startTallystick, tallystickHere, tallystickAt } from './kit/tallystick.ts'

/** What the command printed, an object a line. */
const objects = (text: string): readonly unknown[] => text.trimEnd().split('\n').map(json)

/** Drives a run of the shop on in this process, to its end. */
async function approve(shop: Shop, runId: string, call: string): Promise<void> {
  const ledger = sqliteLedger(shop.ledgerPath)
  const run = createRuntime({ ledger, agents: [shopAgent()] }).resume(runId)
  await run.approve(call, { by: 'ann' })
  await run.result
  await ledger.close()
}

describe.concurrent('tail', () => {
  it('shows what is there, and then what another process does, until the run is done', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const call = callOf(waiting)
    const tail = startTallystick('tail', shop.ledgerPath, 'latest')
    await tail.says(`The run is suspended on pay ${call}.`)
    await approve(shop, waiting.runId, call)
    const { code, stdout } = await tail.ending
    expect(code).toBe(0)
    const shown = [
      'I look.',
      `needs an approval`,
      `${call} was approved by ann`,
      'Payment: 5 USD paid',
      'done:',
    ]
    for (const part of shown) expect(stdout.split(part)).toEqual([expect.any(String), expect.any(String)])
  })

  it('prints each event once for programs, from the one that is asked for', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const tail = startTallystick('tail', shop.ledgerPath, waiting.runId, '--json', '--from', '4')
    await approve(shop, waiting.runId, callOf(waiting))
    const { code, stdout, stderr } = await tail.ending
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const events = objects(stdout) as RuntimeEvent[]
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, place) => place + 4))
    expect(events.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
    const { stdout: exported } = await tallystickHere('export', shop.ledgerPath)
    expect(events).toHaveLength(exported.trimEnd().split('\n').length - 3)
  })

  it('ends where the run is suspended, where that is asked for', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const { code, stdout } = await tallystickHere(
      'tail',
      shop.ledgerPath,
      'latest',
      '--json',
      '--until-suspended',
    )
    expect(code).toBe(0)
    expect(objects(stdout)).toHaveLength(waiting.seq)
  })

  it('ends by Ctrl-C, and leaves no file beside the ledger by which it would seem open', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const tail = startTallystick('tail', shop.ledgerPath, 'latest')
    await tail.says(`suspended on pay ${callOf(waiting)}`)
    tail.kill('SIGINT')
    expect((await tail.ending).code).toBe(0)
    expect(await readdir(shop.folder)).toEqual(['runs.db'])
  })

  it('says that a call waits for a run, not that a person settles it', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start(boss())
    const [approval] = pendingApprovals
    const child = extractRunId(approval!.toolCallId)
    const resumed = await tallystickHere(
      'resume',
      shop.ledgerPath,
      runId,
      '--yes',
      '--json',
      '--config',
      officeConfig,
    )
    expect(resumed.stderr).toContain('All paid.')
    const { stdout } = await tallystickHere('tail', shop.ledgerPath, runId)
    expect(stdout).toMatch(new RegExp(`! call_\\w+ waits for run ${child}, whose end continues it\n`))
    expect(stdout + resumed.stderr).not.toContain('is settled later')
  })
})

describe.concurrent('tail without a run', () => {
  interface Line {
    readonly cursor: string
    readonly event: RuntimeEvent
  }
  const placeOf = ({ event: { runId, seq } }: Line): string => `${runId} ${seq}`

  /** Waits until the command has printed so many lines, and ends it by Ctrl-C. */
  async function lines(count: number, ...words: readonly string[]): Promise<readonly Line[]> {
    const tail = startTallystick('tail', ...words, '--json')
    await tail.prints((text) => text.split('\n').length > count)
    tail.kill('SIGINT')
    const { code, stdout, stderr } = await tail.ending
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return objects(stdout) as Line[]
  }

  it('prints the events of every run with their cursors, those that are there and those that come', async () => {
    await using shop = await openShop()
    const [one, other] = [await shop.start(), await shop.start()]
    const standing = one.seq + other.seq
    const tail = startTallystick('tail', shop.ledgerPath, '--json')
    await tail.prints((text) => text.split('\n').length > standing)
    await approve(shop, one.runId, callOf(one))
    await tail.prints((text) => text.includes('run_finished'))
    tail.kill('SIGINT')
    const all = objects((await tail.ending).stdout) as Line[]
    const ofOne = all.filter(({ event }) => event.runId === one.runId).map(({ event }) => event.seq)
    expect(ofOne).toEqual(ofOne.map((_, index) => index + 1))
    expect(all.filter(({ event }) => event.runId === other.runId)).toHaveLength(other.seq)
    expect(all.at(-1)?.event).toMatchObject({ runId: one.runId, type: 'run_finished' })
    // What comes after a cursor is the rest, each once.
    const rest = await lines(all.length - 5, shop.ledgerPath, '--after', all[4]?.cursor ?? '')
    expect(rest.map(placeOf)).toEqual(all.slice(5).map(placeOf))
  })

  it('shows a person which run continues where', async () => {
    await using shop = await openShop()
    const [one, other] = [await shop.start(), await shop.start()]
    const tail = startTallystick('tail', shop.ledgerPath)
    await tail.prints((text) => text.includes(callOf(other)))
    await approve(shop, one.runId, callOf(one))
    await tail.prints((text) => text.includes('done:'))
    tail.kill('SIGINT')
    const { stdout, code } = await tail.ending
    expect(code).toBe(0)
    const headers = [...stdout.matchAll(/^── (\S+)$/gm)].map(([, runId]) => runId)
    expect(headers).toEqual([one.runId, other.runId, one.runId])
    expect(stdout.slice(stdout.lastIndexOf('──'))).toContain('was approved by ann')
  })

  it('is a 2 for a cursor of another ledger, and for options that belong to one run or to every run', async () => {
    await using shop = await openShop()
    await using elsewhere = await openShop()
    const { runId } = await shop.start()
    await elsewhere.start()
    const [first] = await lines(1, elsewhere.ledgerPath)
    const wrong = [
      [['--after', first?.cursor ?? ''], 'does not belong to an event of this ledger'],
      [['--from', '3'], 'belong to one run'],
      [['--until-suspended'], 'belong to one run'],
      [[runId, '--after', 'x'], 'belongs to every run'],
    ] as const
    for (const [words, why] of wrong) {
      const { code, stderr } = await tallystickHere('tail', shop.ledgerPath, ...words)
      expect({ code, isSaid: stderr.includes(why) }).toEqual({ code: 2, isSaid: true })
    }
  })
})

describe('stats', () => {
  const usage = { inputTokens: 1_000_000, outputTokens: 100_000 }
  const agentOf = (name: string, steps: Parameters<typeof scriptedModel>[0]): Agent =>
    defineAgent({ name, instructions: '', model: scriptedModel(steps, `${name}-model`) })

  const dayMs = 24 * 60 * 60 * 1000
  const now = Date.UTC(2026, 5, 30)

  /** Drives a run with prices, a number of days ago. */
  async function start(shop: Shop, agent: Agent, daysAgo: number): Promise<RunResult> {
    const ledger = sqliteLedger(shop.ledgerPath)
    const clock = manualClock(now - daysAgo * dayMs)
    const prices = { 'seller-model': { inputUsd: 2, outputUsd: 10 } }
    const result = await createRuntime({ ledger, prices, host: { clock } }).run(agent, 'Go.').result
    await ledger.close()
    return result
  }

  it('tells what waits, what failed and why, and what the last days cost by agent and model', async () => {
    await using shop = await openShop()
    const waiting = await start(shop, shopAgent(), 6)
    const failed = await start(shop, agentOf('host', [{ fail: 'authentication' }]), 3)
    await start(shop, agentOf('host', [{ fail: 'authentication' }]), 8)
    for (const daysAgo of [1, 2, 20])
      await start(shop, agentOf('seller', [{ text: 'Sold.', usage }]), daysAgo)
    const { code, stdout } = await tallystickAt(now, 'stats', shop.ledgerPath)
    expect(code).toBe(0)
    expect(stdout).toContain('runs: 5 done, 1 suspended\n')
    expect(stdout).toContain(
      `suspended:\n  ${waiting.runId}  shopper  2026-06-24T00:00:00.000Z  suspended on pay ${callOf(waiting)}\n`,
    )
    expect(stdout).toContain('under way or interrupted: none\n')
    expect(stdout).toContain(
      `ended badly in the last 7 days:\n  ${failed.runId}  host  2026-06-27T00:00:00.000Z  done: model_failed (${failed.detail})\n\n`,
    )
    expect(stdout).toMatch(/^ {2}seller +scripted seller-model +2 +2000000 +200000 +\$6\.0000$/m)
    expect(stdout).toMatch(/^ {2}shopper +scripted scripted-1 +2 +0 +0 +2 calls without a price$/m)
    expect(stdout).toMatch(/^ {2}all +5 +2000000 +200000 +\$6\.0000 and 3 calls without a price$/m)
    const month = await tallystickAt(now, 'stats', shop.ledgerPath, '--days', '30', '--json')
    expect(json(month.stdout)).toMatchObject({
      ...{ days: 30, since: '2026-05-31T00:00:00.000Z', runs: { done: 5, suspended: 1, interrupted: 0 } },
      suspended: [{ runId: waiting.runId, agent: 'shopper', status: 'suspended' }],
      failed: [{ reason: 'model_failed' }, { runId: failed.runId, reason: 'model_failed' }],
      spending: [
        { agent: 'seller', model: { modelId: 'seller-model' }, calls: 3, costUsd: 9, unpriced: 0 },
        { agent: 'host', calls: 2, unpriced: 2 },
        { agent: 'shopper', calls: 2, unpriced: 2 },
      ],
    })
  })

  it('counts the use of a child run once, as its own', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(boss())
    await tallystickHere('resume', shop.ledgerPath, runId, '--yes', '--config', officeConfig)
    const stats = json((await tallystickHere('stats', shop.ledgerPath, '--json')).stdout)
    expect(stats).toMatchObject({
      suspended: [],
      spending: [
        { agent: 'boss', calls: 2, usage: { inputTokens: 20, outputTokens: 2 } },
        { agent: 'clerk', calls: 2, usage: { inputTokens: 20, outputTokens: 2 } },
      ],
    })
  })

  it('counts what a fork shares with the other run once, as that one’s', async () => {
    await using shop = await openShop()
    const steps = [
      { toolCalls: [{ name: 'none', input: {} }], usage },
      { text: 'Sold.', usage },
      { text: 'Sold.', usage },
    ]
    const agent = agentOf('seller', steps)
    const ledger = sqliteLedger(shop.ledgerPath)
    const runtime = createRuntime({ ledger, agents: [agent] })
    const { runId } = await runtime.run(agent, 'Go.').result
    let atSeq = 0
    for await (const { type, seq } of ledger.read(runId)) if (type === 'tool_results_injected') atSeq = seq
    await runtime.fork(runId, { atSeq }).result
    await ledger.close()
    const stats = json((await tallystickHere('stats', shop.ledgerPath, '--json')).stdout)
    expect(stats).toMatchObject({ runs: { done: 2 }, spending: [{ agent: 'seller', calls: 3 }] })
  })

  it('prints none for the runs of an empty ledger', async () => {
    await using shop = await openShop()
    await sqliteLedger(shop.ledgerPath).close()
    const { code, stdout } = await tallystickHere('stats', shop.ledgerPath)
    expect(code).toBe(0)
    expect(stdout).toContain('runs: none\n')
    expect(stdout).toContain('model calls in the last 7 days: none\n')
  })
})

/** Stops the command that listens for a signal, and no other listener. */
const stop = (): void => process.listeners('SIGTERM').at(-1)?.('SIGTERM')

it('every event of a ledger is a line for programs, and a story for people, from a cursor on', async () => {
  await using shop = await openShop()
  const { runId, seq } = await shop.start()
  const printed = async (isJson: boolean, last: string, after?: TailedEvent['cursor']) => {
    let [data, shown] = ['', '']
    const paint = (_style: string, text: string): string => text
    const look = (): void => {
      if (`${data}${shown}`.includes(last)) stop()
    }
    const context = {
      json: isJson,
      print: async (text: string) => {
        data += text
        look()
      },
      view: {
        write: (text: string) => {
          shown += text
          look()
        },
        paint,
      },
    }
    await tailAll(context as never, shop.ledgerPath, after)
    return { shown, lines: data === '' ? [] : (data.trimEnd().split('\n').map(json) as TailedEvent[]) }
  }
  const programs = await printed(true, '"approval_requested"')
  expect(programs.shown).toBe('')
  expect(programs.lines.map(({ event }) => [event.runId, event.seq])).toEqual(
    Array.from({ length: seq }, (_, index) => [runId, index + 1]),
  )
  const later = await printed(true, '"approval_requested"', programs.lines[1]!.cursor)
  expect(later.lines).toEqual(programs.lines.slice(2))
  const people = await printed(false, 'needs an approval')
  expect(people.lines).toEqual([])
  expect(people.shown).toMatch(new RegExp(`^── ${runId}\nrun ${runId} of shopper`))
})
