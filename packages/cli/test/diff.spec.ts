import { describe, expect, it } from 'vitest'
import { createRuntime } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { callOf, openShop, shopAgent } from './kit/shop.ts'
import { json, tallystickHere, tallystickRead } from './kit/tallystick.ts'

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
    expect(stdout).toMatch(
      /^\d+ events are equal, then they part:\n {2}left {2}approval_decided approved by ann\n {2}right approval_decided denied by bob: too dear\n/,
    )
    expect(stdout).toContain('  approved\n    left  true\n    right false\n')
    expect(stdout).toMatch(new RegExp(`^run +${one.runId} +${two.runId}$`, 'm'))
    expect(stdout).toMatch(
      /^from there on +1 turn, 1 tool call, 20 tokens in, 4 out +1 turn, 0 tool calls, 20 tokens in, 4 out$/m,
    )
    expect(stdout).toMatch(/^own work +3 turns, 2 tool calls, .* +3 turns, 1 tool call, /m)
    expect(stdout).toMatch(/^text +Payment: 5 USD paid +Payment: .*too dear/m)
    expect(stdout).toMatch(
      /^turn 2 +\d+ run_resumed +\d+ run_resumed\n +\d+ approval_decided .*\n +\d+ tool_started pay +\d+ tool_result pay denied /m,
    )
    const all = `  tallystick export ${shop.ledgerPath} --run RUN\n`
    const leftOut = 'Left out: deltas and progress. Every event of a run is printed by:\n'
    expect(stdout.endsWith(`\n\n${leftOut}${all}`)).toBe(true)
    const { stdout: printed } = await tallystickHere('export', shop.ledgerPath, '--run', one.runId)
    expect(printed).toContain('"type":"assistant_text_delta"')
    const data = json((await tallystickHere('diff', shop.ledgerPath, one.runId, two.runId, '--json')).stdout)
    expect(data).toMatchObject({
      left: { runId: one.runId, toolCalls: 1, reason: 'answered' },
      right: { runId: two.runId, toolCalls: 0, reason: 'answered' },
    })
  })

  it('shows on a narrow terminal what each run did in a turn, one under the other', async () => {
    await using shop = await openShop()
    const [one, two] = [await shop.start(), await shop.start()]
    const ledger = sqliteLedger(shop.ledgerPath)
    const runtime = createRuntime({ ledger, agents: [shopAgent()] })
    const [paid, left] = [runtime.resume(one.runId), runtime.resume(two.runId)]
    await paid.approve(callOf(one), { by: 'ann' })
    await paid.result
    await left.deny(callOf(two), { by: 'bob', reason: 'too dear' })
    await left.result
    await ledger.close()
    const { stdout } = await tallystickRead(90, 'diff', shop.ledgerPath, one.runId, two.runId)
    const events = stdout.slice(stdout.indexOf('\nturn 2\n') + 1).replaceAll(/\d+ (?=[a-z]+_)/g, '# ')
    expect(events.split('\n')).toEqual([
      ...['turn 2', '  left  # run_resumed', '        # approval_decided approved by ann'],
      ...['        # tool_started pay', '        # tool_result pay success 5 USD paid'],
      ...['  right # run_resumed', '        # approval_decided denied by bob: too dear'],
      expect.stringMatching(/^ {8}# tool_result pay denied /),
      ...['turn 3', '  left  # model_call_started scripted-1'],
      expect.stringMatching(/^ {8}# assistant_message_finished Payment: /),
      '        # run_finished answered',
      '  right # model_call_started scripted-1',
      expect.stringMatching(/^ {8}# assistant_message_finished Payment: /),
      ...['        # run_finished answered', ''],
      'Left out: deltas and progress. Every event of a run is printed by:',
      ...[`  tallystick export ${shop.ledgerPath} --run RUN`, ''],
    ])
  })

  it('shows a turn that only one of the runs has, on its side', async () => {
    await using shop = await openShop()
    const [waiting, done] = [await shop.start(), await shop.start()]
    const ledger = sqliteLedger(shop.ledgerPath)
    const run = createRuntime({ ledger, agents: [shopAgent()] }).resume(done.runId)
    await run.approve(callOf(done), { by: 'ann' })
    await run.result
    await ledger.close()
    const rows = async (one: string, two: string): Promise<readonly string[]> => {
      const { stdout } = await tallystickHere('diff', shop.ledgerPath, one, two)
      return stdout
        .split('\n')
        .map((line) => line.trimEnd())
        .filter((line) => /^turn|^ +\d+ run_finished/.test(line))
    }
    const [, right = '', end = ''] = await rows(waiting.runId, done.runId)
    expect(right).toMatch(/^turn 3 {2,}\d+ model_call_started scripted-1$/)
    expect(end).toMatch(/^ +\d+ run_finished answered$/)
    const [, left = ''] = await rows(done.runId, waiting.runId)
    expect(left).toMatch(/^turn 3 +\d+ model_call_started scripted-1$/)
    expect(right.indexOf('model_call')).toBeGreaterThan(left.indexOf('model_call'))
  })

  it('says that two runs are alike, and is a 5 for a run that is not there', async () => {
    await using shop = await openShop()
    const [one, two] = [await shop.start(), await shop.start()]
    const { stdout } = await tallystickHere('diff', shop.ledgerPath, one.runId, two.runId)
    expect(stdout).toMatch(/^\d+ events are equal; nothing differs\.\n\n/)
    expect(stdout).toMatch(/^ended +not yet +not yet$/m)
    expect((await tallystickHere('diff', shop.ledgerPath, one.runId, 'nobody')).code).toBe(5)
  })
})
