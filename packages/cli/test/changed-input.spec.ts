import { describe, expect, it } from 'vitest'
import { callOf, openShop, shopConfig } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const config = ['--config', shopConfig]

describe('approve with another input', () => {
  it('says what was approved, and every view shows what was asked for, what ran, and who decided', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const [ledger, runId, call] = [shop.ledgerPath, waiting.runId, callOf(waiting)]
    const words = ['approve', ledger, runId, call, '--by', 'ann', '--input', '{"usd":3}']
    const { stderr } = await tallystickHere(...words)
    expect(stderr).toContain(`pay ${call} will run with: {\n  "usd": 3\n}\ninstead of: {\n  "usd": 5\n}\n`)
    expect(json((await tallystickHere(...words, '--json')).stdout)).toMatchObject({
      command: { by: 'ann', via: 'command', input: { usd: 3 } },
      call: { name: 'pay', toolCallId: call, input: { usd: 5 } },
    })
    const resumed = await tallystickHere('resume', ledger, runId, ...config)
    expect((await tallystickHere('replay', ledger, runId, ...config)).code).toBe(0)
    expect((await tallystickHere('verify', ledger)).code).toBe(0)
    const decided = `! ${call} was approved by ann (command), to run with {"usd":3}\n`
    expect(resumed.stdout).toContain(decided)
    expect((await tallystickHere('tail', ledger, runId)).stdout).toContain(decided)
    expect((await tallystickHere('show', ledger, runId, '--events')).stdout).toContain(
      'approval_decided approved by ann (command) to run with {"usd":3}\n',
    )
    const shown = (await tallystickHere('show', ledger, runId)).stdout
    expect(shown).toMatch(
      /asked for +\{"usd":5\}\n +approved +by ann \(command\), event \d+\n +ran with +\{"usd":3\}\n/,
    )
    const explained = (await tallystickHere('explain', ledger, runId, '3')).stdout
    expect(explained).toContain('pay: success (ran with {"usd":3}, approved by ann)')
    const data = json((await tallystickHere('show', ledger, runId, '--json')).stdout)
    expect(data).toMatchObject({
      calls: [
        { name: 'look', requested: { at: 'tea' }, executed: { at: 'tea' } },
        {
          name: 'pay',
          requested: { usd: 5 },
          decision: { approved: true, by: 'ann', via: 'command', input: { usd: 3 } },
          executed: { usd: 3 },
          outcome: 'success',
        },
      ],
    })
  })

  it('is refused where it does not fit the schema on record, before anything is recorded', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const [ledger, runId, call] = [shop.ledgerPath, waiting.runId, callOf(waiting)]
    const refused = await tallystickHere('approve', ledger, runId, call, '--input', '{"usd":"all"}')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('usd: ') })
    const data = json((await tallystickHere('show', ledger, runId, '--json')).stdout)
    expect(data).toMatchObject({ inbox: [], pendingApprovals: [{ toolCallId: call }] })
  })
})

describe('a decision', () => {
  it('names its call and its author: an empty or ambiguous one is refused', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const [ledger, call] = [shop.ledgerPath, callOf(waiting)]
    const approve = (...words: readonly string[]): ReturnType<typeof tallystickHere> =>
      tallystickHere('approve', ledger, 'latest', ...words)
    expect(await approve('')).toMatchObject({ code: 2, stderr: expect.stringContaining('Name the call') })
    // The call of the first turn ends so, too.
    expect(await approve('_1_1')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('matches 2 calls'),
    })
    expect(await approve(call, '--by', ' ')).toMatchObject({ code: 2 })
    expect(await tallystickHere('deny', ledger, 'latest', call, '--by', '', '--reason', 'no')).toMatchObject({
      code: 2,
    })
    expect(await tallystickHere('settle', ledger, 'latest', '', '--result', 'x')).toMatchObject({ code: 2 })
    expect(await approve('2_1_1', '--by', 'ann')).toMatchObject({ code: 0 })
  })
})
