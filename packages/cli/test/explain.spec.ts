import { defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

describe('explain', () => {
  it('shows the parts of a request, each with the events that it came from', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const { code, stdout } = await tallystickHere('explain', shop.ledgerPath, 'latest', '2')
    expect(code).toBe(0)
    expect(stdout).toContain(`turn     2, agent shopper, model scripted-1\n`)
    expect(stdout).toMatch(/^attempt {2}1 at event \d+: answered$/m)
    expect(stdout).toMatch(/^input {4}about \d+ tokens$/m)
    expect(stdout).toMatch(/^ITEM +EVENTS +TOKENS +COST +WHAT$/m)
    expect(stdout).toMatch(/^instructions +1 +\d+ *$/m)
    expect(stdout).toMatch(/^0 user +2 +\d+ +Buy tea\.$/m)
    expect(stdout).toMatch(/^1 assistant +\d+-\d+ +\d+ +I look\. look\(…\)$/m)
    expect(stdout).toMatch(/^2 tool +\d+-\d+ +\d+ +look: success$/m)
    const forPrograms = await tallystickHere('explain', shop.ledgerPath, runId, '2', '--json')
    expect(json(forPrograms.stdout)).toMatchObject({
      ...{ runId, turn: 2, agent: 'shopper', leftOut: [] },
      items: [
        { kind: 'instructions', seqs: [1] },
        { kind: 'tools' },
        { index: 0, seqs: [2] },
        {},
        { index: 2 },
      ],
    })
  })

  it('names what the options of an adapter add to a request, as show --request does', async () => {
    await using shop = await openShop()
    const additions = [
      { option: 'extraBody', field: 'instructions', replaces: true, digest: 'd1' },
      { option: 'headers', field: 'x-token' },
    ] as const
    const model = { ...scriptedModel([{ text: 'Hello.' }]), additions }
    const { runId } = await shop.start(defineAgent({ name: 'greeter', instructions: 'Greet.', model }))
    const explained = await tallystickHere('explain', shop.ledgerPath, runId, '1')
    expect(explained.stdout).toMatch(/^replaced +instructions \(option extraBody, SHA-256 d1\)$/m)
    expect(explained.stdout).toMatch(/^added +the header x-token \(option headers, a credential\)$/m)
    const shown = await tallystickHere('show', shop.ledgerPath, runId, '--request', '--at', '3')
    expect(shown.stdout).toContain("The adapter's options replace instructions (option extraBody")
    const forPrograms = await tallystickHere('show', shop.ledgerPath, runId, '--json')
    expect(json(forPrograms.stdout)).toMatchObject({ request: { additions } })
  })

  it('is a 2 for a turn that the run did not have, or that is not a number', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    expect(await tallystickHere('explain', shop.ledgerPath, runId, '9')).toMatchObject({
      ...{ code: 2, stdout: '', stderr: expect.stringContaining(`Run ${runId} has no turn 9`) },
    })
    expect((await tallystickHere('explain', shop.ledgerPath, runId, 'two')).code).toBe(2)
  })
})
