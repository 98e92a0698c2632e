import { describe, expect, it } from 'vitest'
import { createRuntime } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { callOf, openShop, shopAgent } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

describe('diff', () => {
  it('shows where two runs part, and what each did from there on, side by side', async () => {
    await using shop = await openShop()
    const [one, two] = [await shop.start(), await shop.start()]
    const ledger = sqliteLedger(shop.ledgerPath)
    const runtime = createRuntime({ ledger, agents: [shopAgent()] })
    const paid = runtime.resume(one.runId)
    await paid.approve(callOf(one), { by: 'ann' })
    await paid.result
    const left = runtime.resume(two.runId)
    await left.deny(callOf(two), { by: 'bob', reason: 'too dear' })
    await left.result
    await ledger.close()
    const { code, stdout } = await tallystickHere('diff', shop.ledgerPath, one.runId, two.runId)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\d+ events say the same, then: approval_decided left, approval_decided right\n/)
    expect(stdout).toContain('  approved\n    left  true\n    right false\n')
    expect(stdout).toMatch(new RegExp(`^run +${one.runId} +${two.runId}$`, 'm'))
    expect(stdout).toMatch(/^used +1 turn, 1 tool call +1 turn, 0 tool calls$/m)
    expect(stdout).toMatch(/^text +Payment: 5 USD paid +Payment: .*too dear/m)
    expect(stdout).toMatch(/^\d+ tool_started pay +\d+ tool_result pay denied /m)
    const data = json((await tallystickHere('diff', shop.ledgerPath, one.runId, two.runId, '--json')).stdout)
    expect(data).toMatchObject({
      left: { runId: one.runId, toolCalls: 1, reason: 'answered' },
      right: { runId: two.runId, toolCalls: 0, reason: 'answered' },
    })
  })

  it('says that two runs are alike, and is a 5 for a run that is not there', async () => {
    await using shop = await openShop()
    const [one, two] = [await shop.start(), await shop.start()]
    const { stdout } = await tallystickHere('diff', shop.ledgerPath, one.runId, two.runId)
    expect(stdout).toMatch(/^\d+ events say the same, and there are no others\.\n$/)
    expect((await tallystickHere('diff', shop.ledgerPath, one.runId, 'nobody')).code).toBe(5)
  })
})
