import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { RunResult, RuntimeEvent } from '@tallystick/core'
import type { EventType } from '@tallystick/core/vocabulary'
import { callOf, openShop, shopAgent, shopConfig, type Shop } from './kit/shop.ts'
import { json, tallystickHere, type Ending } from './kit/tallystick.ts'

const config = ['--config', shopConfig]

/** What is on record of a run. */
async function eventsOf(shop: Shop, run: string): Promise<readonly RuntimeEvent[]> {
  const { stdout } = await tallystickHere('export', shop.ledgerPath, '--run', run)
  return stdout.trimEnd().split('\n').map(json) as RuntimeEvent[]
}

const ofType = <T extends EventType>(events: readonly RuntimeEvent[], type: T) =>
  events.filter((event): event is Extract<RuntimeEvent, { readonly type: T }> => event.type === type)

/** A run that was approved and is done; the fork command, with what came of a fork. */
async function bought(shop: Shop, instructions?: string) {
  const waiting = await shop.start(shopAgent(instructions))
  await tallystickHere('resume', shop.ledgerPath, waiting.runId, '--yes', '--by', 'ann', ...config)
  const fork = async (...words: readonly string[]) => {
    const ending = await tallystickHere('fork', shop.ledgerPath, waiting.runId, ...words, '--json', ...config)
    const result = (ending.code === 0 ? json(ending.stdout) : {}) as RunResult
    return { ...ending, result, events: ending.code === 0 ? await eventsOf(shop, result.runId) : [] }
  }
  return { runId: waiting.runId, events: await eventsOf(shop, waiting.runId), call: callOf(waiting), fork }
}

describe('a fork from the command line', () => {
  it('shares the first events, says something else, and is driven to its rest', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const words = [
      shop.ledgerPath,
      runId,
      '--at',
      '2',
      '--input',
      'Buy coffee.',
      '--reason',
      'no tea',
      '--by',
      'ann',
    ]
    const forked = await tallystickHere('fork', ...words, '--yes', '--run-writes', '--json', ...config)
    expect(forked).toMatchObject({ code: 0 })
    const result = json(forked.stdout) as { readonly runId: string }
    expect(result).toMatchObject({ status: 'done', reason: 'answered' })
    expect(result.runId).not.toBe(runId)
    const diff = `tallystick diff ${shop.ledgerPath} ${runId} ${result.runId}`
    expect(forked.stderr).toContain(
      `shares 2 events with run ${runId}. Its own work: 3 turns, 2 tool calls, 1 result from the record, `,
    )
    expect(forked.stderr).toContain(`Compare them with: ${diff}\n`)

    const events = await eventsOf(shop, result.runId)
    expect(events[0]).toMatchObject({ parent: { runId, seq: 2, relation: 'fork' } })
    expect(events[2]).toMatchObject({ type: 'history_edited', by: 'ann', reason: 'no tea' })
    const listed = await tallystickHere('list', shop.ledgerPath, '--json')
    expect(listed.stdout.trimEnd().split('\n').map(json)).toMatchObject([
      { runId: result.runId, input: 'Buy coffee.' },
      { runId, input: 'Buy tea.' },
    ])
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
    expect((await tallystickHere(...diff.split(' ').slice(1))).code).toBe(0)
    expect(await tallystickHere('replay', shop.ledgerPath, result.runId, ...config)).toMatchObject({
      code: 0,
    })
  })

  it('at an event that is not there is refused, and leaves nothing in the ledger', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const refused = await tallystickHere('fork', shop.ledgerPath, runId, '--at', '999', ...config)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('cannot be forked at its event 999')
    const listed = await tallystickHere('list', shop.ledgerPath, '--json')
    expect(listed.stdout.trimEnd().split('\n')).toHaveLength(1)
  })

  it('gives a call another result, and begins in front of the one on record', async () => {
    await using shop = await openShop()
    const { events, fork } = await bought(shop)
    const [looked] = ofType(events, 'tool_result')
    const other = await fork('--result', '1_1_1', 'tea for 9 USD', '--by', 'ann')
    expect(ofType(other.events, 'run_started')[0]?.parent?.seq).toBe(looked!.seq - 1)
    expect(ofType(other.events, 'tool_result')[0]).toMatchObject({
      name: 'look',
      content: [{ text: 'tea for 9 USD' }],
    })
    expect(other.stderr).toContain('It is tea for 9 USD. ')
    expect(other.result.status).toBe('suspended')
    const failed = await fork('--failed', '1_1_1', 'no shop', '--deny', 'no')
    expect(ofType(failed.events, 'tool_result')[0]).toMatchObject({
      outcome: 'failed',
      content: [{ text: 'no shop' }],
    })
    expect((await fork('--result', '1_1_1')).code).toBe(2)
    expect(await fork('--result', '9_1_1', 'x')).toMatchObject({
      ...{ code: 5, stderr: expect.stringContaining('has started no tool call whose id ends in 9_1_1') },
    })
    expect(await fork('--result', '_1_1', 'x')).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('has started 2 tool calls whose id ends in _1_1') },
    })
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
  })

  it('decides otherwise about the last call that waited for an approval', async () => {
    await using shop = await openShop()
    const { events, fork } = await bought(shop)
    const { seq } = ofType(events, 'approval_requested')[0]!
    const denied = await fork('--deny', 'too dear', '--by', 'bob')
    expect(ofType(denied.events, 'run_started')[0]?.parent?.seq).toBe(seq)
    expect(denied.events[seq]).toMatchObject({
      type: 'approval_decided',
      approved: false,
      by: 'bob',
      seq: seq + 1,
    })
    expect(denied.result.text).toBe('Payment: bob denied this call: too dear')
    const again = await fork('--yes', '--by', 'bob')
    expect(again.result.text).toBe('Payment: 5 USD paid')
    expect(ofType(again.events, 'tool_result').at(-1)).toMatchObject({
      name: 'pay',
      reused: expect.stringMatching(/^call_/),
    })
    expect(again.stderr).toContain('success, as on record: nothing ran\n')
  })

  it.each([
    [true, ['--yes']],
    [false, ['--deny', 'too dear']],
  ])(
    'given a run with approvals, when its input is another and all are decided alike (%s), then the fork begins at the input',
    async (approved, decision) => {
      await using shop = await openShop()
      const { events, fork, call } = await bought(shop)
      const { seq } = ofType(events, 'input_received').at(-1)!
      const other = await fork('--input', 'Buy coffee.', ...decision, '--by', 'bob')
      expect(other).toMatchObject({ code: 0, result: { status: 'done', reason: 'answered' } })
      expect(ofType(other.events, 'run_started')[0]?.parent?.seq).toBe(seq)
      expect(ofType(other.events, 'history_edited')).toMatchObject([{ seq: seq + 1 }])
      expect(ofType(other.events, 'approval_decided')).toMatchObject([{ approved, by: 'bob' }])
      expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)

      const amid = await fork('--input', 'Buy coffee.', '--result', call, 'x', ...decision)
      expect(amid).toMatchObject({ code: 2, stderr: expect.stringContaining('in the middle of a turn') })
    },
  )

  it('performs no write again, also with --yes, until --run-writes lets it', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const words = ['fork', shop.ledgerPath, runId, '--json', ...config]
    const whatIf = await tallystickHere(...words, '--yes', '--by', 'ann')
    expect(whatIf.code).toBe(0)
    const stubbed = json(whatIf.stdout) as RunResult
    expect(stubbed.text).toContain('Payment: This run is a fork, in which writes are not performed')
    expect(whatIf.stderr).toContain('Not performed, since this is a fork: pay. With --run-writes')
    expect(ofType(await eventsOf(shop, stubbed.runId), 'tool_started').map(({ name }) => name)).toEqual([
      'look',
    ])
    const asking = json((await tallystickHere(...words)).stdout) as RunResult
    expect(asking).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
    const again = json((await tallystickHere(...words, '--yes', '--run-writes')).stdout) as RunResult
    expect(again.text).toBe('Payment: 5 USD paid')
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
    expect((await tallystickHere('replay', shop.ledgerPath, stubbed.runId, ...config)).code).toBe(0)
  })

  it('continues with other instructions, another model or a tool less, and its resume with the same', async () => {
    await using shop = await openShop()
    const { runId, fork } = await bought(shop)
    const file = join(shop.folder, 'polite.txt')
    await writeFile(file, 'Buy tea, please.\n')
    const polite = await fork('--instructions', file)
    expect(ofType(polite.events, 'run_resumed')[0]?.definition).toMatchObject({
      ...{
        instructions: 'Buy tea, please.',
        model: { modelId: 'scripted-1' },
        tools: [{ name: 'look' }, { name: 'pay' }],
      },
    })
    const resume = `tallystick resume ${shop.ledgerPath} ${polite.result.runId} --instructions ${file}`
    expect(polite.stderr).toContain(`  ${resume}\n`)
    await tallystickHere(...resume.split(' ').slice(1), '--yes', ...config)
    const resumed = await eventsOf(shop, polite.result.runId)
    expect(ofType(resumed, 'run_finished')).toHaveLength(1)
    expect(ofType(resumed, 'run_resumed').map(({ definition }) => definition === undefined)).toEqual([
      ...[false, true],
    ])

    const without = await fork('--without-tool', 'look')
    expect(ofType(without.events, 'tool_result')[0]).toMatchObject({ name: 'look', outcome: 'unknown_tool' })
    expect(await fork('--without-tool', 'weigh')).toMatchObject({
      ...{
        code: 2,
        stderr: expect.stringContaining('Agent shopper has no tool weigh. Its tools: look, pay.'),
      },
    })

    const other = join(shop.folder, 'tallystick.config.mjs')
    await writeFile(
      other,
      `import { shopAgent } from '${import.meta.resolve('./kit/shop.ts')}'
      const { model } = shopAgent()
      export default { agents: [shopAgent()], models: [{ ...model, modelId: 'scripted-2', stream: (...given) => model.stream(...given) }] }`,
    )
    const words = ['fork', shop.ledgerPath, runId, '--config', other, '--json', '--model']
    const asked = await tallystickHere(...words, 'scripted-2')
    const started = ofType(
      await eventsOf(shop, (json(asked.stdout) as RunResult).runId),
      'model_call_started',
    )
    expect(started.map(({ model }) => model.modelId)).toEqual(['scripted-2', 'scripted-2'])
    const unknown: Ending = await tallystickHere(...words, 'scripted-3')
    expect(unknown).toMatchObject({ code: 2 })
    expect(unknown.stderr).toContain(
      'The configuration has no model scripted-3. It has: scripted-2, scripted-1.',
    )
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
  })
})

describe('run', () => {
  it('starts an agent with other instructions, another model or a tool less', async () => {
    await using shop = await openShop()
    const file = join(shop.folder, 'polite.txt')
    await writeFile(file, 'Buy tea, please.')
    const words = [
      '--instructions',
      file,
      '--model',
      'scripted/scripted-1',
      '--without-tool',
      'pay',
      ...config,
    ]
    const { stdout } = await tallystickHere('run', shop.ledgerPath, 'Buy tea.', '--json', ...words)
    const [first] = stdout.split('\n').map((line) => (line === '' ? {} : json(line)))
    expect(first).toMatchObject({
      definition: { instructions: 'Buy tea, please.', tools: [{ name: 'look' }] },
    })
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
  })
})
