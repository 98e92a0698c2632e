import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { callOf, openShop, shopAgent, shopConfig } from './kit/shop.ts'
import { json, tallystick, tallystickHere } from './kit/tallystick.ts'

const config = ['--config', shopConfig]

describe.concurrent('a decision from another process', () => {
  it('waits in the inbox until resume carries the run on to its end', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const [call, runId] = [callOf(waiting), waiting.runId]
    const approved = await tallystick(
      'approve',
      shop.ledgerPath,
      runId.slice(-10),
      call.slice(-5),
      '--by',
      'ann',
    )
    expect(approved).toMatchObject({ code: 0, stdout: `tallystick resume ${shop.ledgerPath} ${runId}\n` })
    expect(approved.stderr).toContain(`approve for run ${runId}`)

    const resumed = await tallystick('resume', shop.ledgerPath, runId, ...config)
    expect(resumed.code).toBe(0)
    expect(resumed.stdout).toContain(`! ${call} was approved by ann (command)\n`)
    expect(resumed.stdout).toMatch(new RegExp(`└ result  pay ${call} success in \\d+ ms\n +5 USD paid\n`))
    expect(resumed.stdout).toContain('Payment: 5 USD paid')
    expect(resumed.stdout).toContain('Tally: 2 requests, 2 results, 0 open.')
    expect(resumed.stdout).not.toContain('I look.')
    const [given, closed] = resumed.stderr.split('\n')
    expect(json(given ?? '')).toEqual({
      verb: 'resume',
      agent: 'shopper',
      ledgerPath: shop.ledgerPath,
      modelId: 'scripted-1',
      runId,
    })
    expect(closed).toBe('config closed')

    const already = `Run ${runId} was done already: answered. Nothing was left to do.\n`
    expect(resumed.stdout).not.toContain(already)
    const again = await tallystick('resume', shop.ledgerPath, runId, ...config)
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining(already) })

    const listed = await tallystick('list', shop.ledgerPath, '--json')
    expect(json(listed.stdout)).toMatchObject({
      runId,
      status: 'done',
      reason: 'answered',
      turns: 3,
      toolCalls: 2,
    })
  })

  it('may change the input of the call', async () => {
    await using shop = await openShop()
    const { runId, ...waiting } = await shop.start()
    const call = callOf({ runId, ...waiting })
    await tallystickHere('approve', shop.ledgerPath, runId, call, '--by', 'ann', '--input', '{"usd":3}')
    const { code, stdout } = await tallystickHere('resume', shop.ledgerPath, runId, '--json', ...config)
    expect(code).toBe(0)
    expect(json(stdout)).toMatchObject({
      runId,
      status: 'done',
      reason: 'answered',
      text: expect.stringContaining('ann changed it before it ran. What differed: "usd" was 3.'),
      turns: 3,
    })
  })

  it('may deny the call, and the model reads why', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    await tallystickHere(
      'deny',
      shop.ledgerPath,
      waiting.runId,
      callOf(waiting),
      '--by',
      'bob',
      '--reason',
      'too dear',
    )
    const { stdout } = await tallystickHere('resume', shop.ledgerPath, 'latest', '--json', ...config)
    expect(json(stdout)).toMatchObject({
      status: 'done',
      toolCalls: 1,
      text: expect.stringContaining('bob denied this call: too dear'),
    })
  })

  it('is taken once: the same again changes nothing, another one is refused', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const words = [shop.ledgerPath, waiting.runId, callOf(waiting), '--by', 'ann', '--json']
    expect(json((await tallystickHere('approve', ...words)).stdout)).toMatchObject({
      added: true,
      command: { type: 'approve', by: 'ann' },
    })
    expect(json((await tallystickHere('approve', ...words)).stdout)).toMatchObject({ added: false })
    const denied = await tallystickHere('deny', ...words, '--reason', 'no')
    expect(denied).toMatchObject({ code: 1, stdout: '' })
    expect(json(denied.stderr)).toMatchObject({
      error: { code: 'refused', exitCode: 1, message: expect.stringContaining('approve by ann') },
    })
  })

  it('may cover later calls of the session, until it is withdrawn', async () => {
    await using shop = await openShop()
    const inSession = { sessionId: 'tea' }
    const waiting = await shop.start(shopAgent(), inSession)
    const [path, call] = [shop.ledgerPath, callOf(waiting)]
    const give = (...more: string[]) =>
      tallystickHere('approve', path, 'latest', call, '--by', 'ann', '--standing', ...more)
    expect(await give('for ever')).toMatchObject({ code: 2, stderr: expect.stringContaining('session=AGE') })
    expect(await give('session=8h', '--input', '{"usd":3}')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot change the input'),
    })
    const given = await give('session=8h')
    expect(given).toMatchObject({ code: 0, stderr: expect.stringContaining('later calls of the tool until') })
    await tallystickHere('resume', path, 'latest', ...config)
    // The next run of the session asks nobody.
    expect(await shop.start(shopAgent(), inSession)).toMatchObject({ status: 'done' })

    const end = (...more: string[]) => tallystickHere('withdraw', path, 'latest', ...more, '--by', 'bob')
    expect(await end('9_9_9')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(`Standing: ${call}.`),
    })
    expect(await end(call.slice(-5), '--reason', 'Too dear.')).toMatchObject({ code: 0 })
    expect(await end(call)).toMatchObject({ code: 5, stderr: expect.stringContaining('Standing: none.') })
    expect(await shop.start(shopAgent(), inSession)).toMatchObject({ status: 'suspended' })
    expect(await tallystickHere('verify', path)).toMatchObject({ code: 0 })
  })

  it('may withdraw such an approval from a run that waits', async () => {
    await using shop = await openShop()
    const waiting = await shop.start(shopAgent(), { sessionId: 'tea' })
    const [path, call] = [shop.ledgerPath, callOf(waiting)]
    await tallystickHere('approve', path, waiting.runId, call, '--standing', 'equal_input=8h')
    await tallystickHere('resume', path, 'latest', ...config)
    const agent = { ...shopAgent(), approval: () => ({ ask: 'more', approvers: { count: 2 } }) }
    const { runId } = await shop.start(agent as never, { sessionId: 'tea' })
    const ended = await tallystickHere('withdraw', path, runId, call, '--by', 'bob', '--json')
    expect(json(ended.stdout)).toMatchObject({ command: { type: 'withdraw', standing: call }, added: true })
  })

  it('is refused at once where the record does not allow it', async () => {
    await using shop = await openShop()
    const agent = { ...shopAgent(), approval: () => ({ ask: 'money', approvers: { roles: ['finance'] } }) }
    const { runId, ...rest } = await shop.start(agent as never, { owner: 'olga' })
    const approve = (...more: string[]) =>
      tallystickHere('approve', shop.ledgerPath, runId, callOf({ runId, ...rest }), ...more)
    expect(await approve('--by', 'ann')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('finance'),
    })
    expect(await approve('--by', 'Olga', '--role', 'finance')).toMatchObject({ code: 1 })
    expect(await approve('--by', 'ann', '--role', 'finance')).toMatchObject({ code: 0 })
  })

  it('may stop the run: every open call gets a result', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    expect(await tallystickHere('cancel', shop.ledgerPath, runId, '--reason', 'closed')).toMatchObject({
      code: 0,
    })
    const { code, stdout } = await tallystickHere('resume', shop.ledgerPath, runId, ...config)
    expect(code).toBe(0)
    expect(stdout).toContain('2 requests, 2 results, 0 open')
    expect(stdout).toContain('done: cancelled')
    expect(await tallystickHere('cancel', shop.ledgerPath, runId)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is done (cancelled)'),
    })
  })
})

describe.concurrent('resume', () => {
  it('decides by --yes or --deny, for the record under --by', async () => {
    await using shop = await openShop()
    const [first, second] = [await shop.start(), await shop.start()]
    const yes = await tallystickHere(
      'resume',
      shop.ledgerPath,
      first.runId,
      '--yes',
      '--by',
      'ann',
      ...config,
    )
    expect(yes.stdout).toContain(`${callOf(first)} was approved by ann (--yes)`)
    const no = await tallystickHere(
      'resume',
      shop.ledgerPath,
      second.runId,
      '--deny',
      'not now',
      '--by',
      'bob',
      ...config,
    )
    expect(no.stdout).toContain(`${callOf(second)} was denied by bob (--deny): not now`)
    expect(no.stdout).toContain('done: answered')
  })

  it('leaves a run suspended where there is no person to ask, and says what continues it', async () => {
    await using shop = await openShop()
    const waiting = await shop.start()
    const { code, stdout } = await tallystickHere('resume', shop.ledgerPath, waiting.runId, ...config)
    expect(code).toBe(0)
    const call = `${shop.ledgerPath} ${waiting.runId} ${callOf(waiting)}`
    expect(stdout).toContain(`  tallystick approve ${call} --by you\n`)
    expect(stdout).toContain(`  tallystick resume ${shop.ledgerPath} ${waiting.runId}\n`)
  })

  it('needs a configuration that gives the agent', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const missing = await tallystickHere(
      'resume',
      shop.ledgerPath,
      runId,
      '--config',
      join(shop.folder, 'none.ts'),
    )
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('No configuration was found') })
    const other = join(shop.folder, 'tallystick.config.js')
    await writeFile(other, 'export default { agents: [] }')
    const strange = await tallystickHere('resume', shop.ledgerPath, runId, '--config', other)
    expect(strange).toMatchObject({ code: 2, stderr: expect.stringContaining('shopper') })
    const seven = join(shop.folder, 'seven.config.js')
    await writeFile(seven, 'export default 7')
    expect(await tallystickHere('resume', shop.ledgerPath, runId, '--config', seven)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('gives no agents'),
    })
  })
})
