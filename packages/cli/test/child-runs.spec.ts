import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentTool, createRuntime, type RunId, type RunResult, memoryLedger } from '@tallystick/core'
import { openTurnCalls } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel, sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { awaitParentNotified } from '../src/verbs/resume.ts'
import { sortByParent } from '../src/view/run-table.ts'
import { banker, boss, clerk, officeConfig, owner } from './kit/office.ts'
import { openShop, type Shop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const config = ['--config', officeConfig]

/** A run whose clerk waits for an approval, in a run of its own. */
async function waitingBoss(shop: Shop): Promise<{ parent: RunId; child: RunId; call: string }> {
  const { runId: parent, pendingApprovals } = await shop.start(boss())
  const [approval] = pendingApprovals
  if (approval === undefined) throw new Error('no call waits')
  return { parent, child: approval.runId, call: approval.toolCallId }
}

describe.concurrent('a call of a child run', () => {
  it('is decided by the command that resume prints, and the run at the top continues in another process', async () => {
    await using shop = await openShop()
    const { parent, child, call } = await waitingBoss(shop)
    const waiting = await tallystickHere('resume', shop.ledgerPath, parent, ...config)
    expect(waiting).toMatchObject({ code: 0, stderr: '' })
    const approve = `tallystick approve ${shop.ledgerPath} ${child} ${call} --by you`
    expect(waiting.stdout).toContain(`about pay {"usd":5}, which run ${child} asks for:\n  ${approve}\n`)
    expect(waiting.stdout).toContain(`  tallystick resume ${shop.ledgerPath} ${parent}\n`)

    const approved = await tallystickHere(...approve.split(' ').slice(1))
    expect(approved).toMatchObject({ code: 0, stdout: `tallystick resume ${shop.ledgerPath} ${parent}\n` })
    expect(approved.stderr).toContain(`approve for run ${child}, a child run of ${parent}.`)
    const shown = await tallystickHere('show', shop.ledgerPath, child)
    expect(shown.stdout).toContain(
      `inbox    approve ${call} by you, for the process that drives the run next\n`,
    )

    const resumed = await tallystickHere('resume', shop.ledgerPath, parent, ...config)
    expect(resumed).toMatchObject({ code: 0, stderr: '' })
    expect(resumed.stdout).toContain('All paid.')
    expect(resumed.stdout).toContain('Tally: 1 request, 1 result, 0 open.')
    const listed = (await tallystickHere('list', shop.ledgerPath, '--json')).stdout
      .trimEnd()
      .split('\n')
      .map(json)
    expect(listed).toMatchObject([
      { runId: child, status: 'done', reason: 'answered' },
      { runId: parent, status: 'done', reason: 'answered' },
    ])
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
  })

  it('is found under the name of the run at the top, and decided once under either name', async () => {
    await using shop = await openShop()
    const { parent, child, call } = await waitingBoss(shop)
    const words = ['--by', 'ann', '--json']
    const atTop = await tallystickHere('approve', shop.ledgerPath, parent, call.slice(-9), ...words)
    expect(json(atTop.stdout)).toMatchObject({
      ...{ runId: child, added: true, command: { type: 'approve', toolCallId: call, by: 'ann' } },
      call: { runId: child, toolCallId: call, name: 'pay', input: { usd: 5 } },
      next: `tallystick resume ${shop.ledgerPath} ${parent}`,
    })
    const below = await tallystickHere('approve', shop.ledgerPath, child, call, ...words)
    expect(json(below.stdout)).toMatchObject({ runId: child, added: false })
    const denied = await tallystickHere('deny', shop.ledgerPath, parent, call, '--reason', 'no')
    expect(denied).toMatchObject({ code: 1, stderr: expect.stringContaining('approve by ann') as string })
  })

  it('that is decided by resume --yes at the top takes the whole to its end', async () => {
    await using shop = await openShop()
    const { parent } = await waitingBoss(shop)
    const { code, stdout } = await tallystickHere(
      'resume',
      shop.ledgerPath,
      parent,
      '--yes',
      '--json',
      ...config,
    )
    expect(code).toBe(0)
    expect(json(stdout)).toMatchObject({
      ...{
        runId: parent,
        agent: 'boss',
        status: 'done',
        reason: 'answered',
        detail: null,
        output: 'All paid.',
      },
      ...{ costUsd: null, turns: 2, toolCalls: 1, children: { runs: 1, turns: 2, toolCalls: 1 } },
      ...{ pendingApprovals: [], deferredCalls: [], usage: { inputTokens: 40, outputTokens: 4 } },
    })
  })
})

describe.concurrent('a call that an outside system carries out, in a child run', () => {
  it('is settled by the command that resume prints, under either name, and both runs continue', async () => {
    await using shop = await openShop()
    const { runId: parent, deferredCalls } = await shop.start(banker())
    const [deferred] = deferredCalls
    const { runId: child, toolCallId: call } = deferred!
    const waiting = await tallystickHere('resume', shop.ledgerPath, parent, ...config)
    expect(waiting.stdout).toContain(
      `until transfer, which continues outside as transfer-7, has come to an end, which run ${child} asks for:\n` +
        `  tallystick settle ${shop.ledgerPath} ${child} ${call} --result 'what it came to'\n`,
    )
    expect(waiting.stdout).not.toContain('settle later')
    expect((await tallystickHere('show', shop.ledgerPath, parent)).stdout).toContain(
      `waiting  transfer ${call} continues outside as transfer-7, in run ${child}\n`,
    )
    const settled = await tallystickHere(
      'settle',
      shop.ledgerPath,
      parent,
      'transfer-7',
      '--result',
      'ok',
      '--json',
    )
    expect(json(settled.stdout)).toMatchObject({
      ...{ runId: child, added: true, command: { type: 'settle', toolCallId: call } },
      next: `tallystick resume ${shop.ledgerPath} ${parent}`,
    })
    const done = await tallystickHere('resume', shop.ledgerPath, parent, '--json', ...config)
    expect(json(done.stdout)).toMatchObject({ status: 'done', text: 'It is there.' })
  })
})

describe.concurrent('resume of a child run', () => {
  it('continues the parent after it, and closes the ledger when both have stopped', async () => {
    await using shop = await openShop()
    const { parent, child, call } = await waitingBoss(shop)
    await tallystickHere('approve', shop.ledgerPath, child, call, '--by', 'ann')
    const resumed = await tallystickHere('resume', shop.ledgerPath, child, ...config)
    expect(resumed).toMatchObject({ code: 0, stderr: '' })
    expect(resumed.stdout).toContain(`Run ${child} is a child of run ${parent}, which continues:\n`)
    expect(resumed.stdout).toMatch(/Paid\.[^]*which continues:[^]*All paid\./)
    expect(resumed.stdout.match(/tallystick show .*/g)).toEqual([
      `tallystick show ${shop.ledgerPath} ${parent}`,
    ])
    const shown = await tallystickHere('show', shop.ledgerPath, parent, '--json')
    expect(json(shown.stdout)).toMatchObject({ status: 'done', reason: 'answered', inbox: [] })
  })

  it('tells programs of both, the one that was named outside', async () => {
    await using shop = await openShop()
    const { parent, child } = await waitingBoss(shop)
    const resumed = await tallystickHere('resume', shop.ledgerPath, child, '--yes', '--json', ...config)
    expect(resumed.code).toBe(0)
    expect(json(resumed.stdout)).toMatchObject({
      ...{ runId: child, agent: 'clerk', status: 'done', text: 'Paid.' },
      parent: { runId: parent, agent: 'boss', status: 'done', text: 'All paid.' },
    })
  })

  it('leaves word for the other where the configuration does not know its agent', async () => {
    await using shop = await openShop()
    const { parent, child } = await waitingBoss(shop)
    const clerkOnly = join(shop.folder, 'clerk.config.mjs')
    const kit = import.meta.resolve('./kit/office.ts')
    await writeFile(clerkOnly, `import { clerk } from '${kit}'\nexport default { agents: [clerk()] }`)
    const resumed = await tallystickHere('resume', shop.ledgerPath, child, '--yes', '--config', clerkOnly)
    expect(resumed.code).toBe(0)
    expect(resumed.stderr).toBe(
      `Its parent is run ${parent}, which continues with its result. If no process drives the parent, this does:\n` +
        `  tallystick resume ${shop.ledgerPath} ${parent}\n`,
    )
    const later = await tallystickHere('resume', shop.ledgerPath, parent, '--json', ...config)
    expect(json(later.stdout)).toMatchObject({ status: 'done', text: 'All paid.' })
  })

  it('continues every parent, at any depth', async () => {
    await using shop = await openShop()
    const { runId: top, pendingApprovals } = await shop.start(owner())
    const child = pendingApprovals[0]!.runId
    const listed = await tallystickHere('list', shop.ledgerPath)
    expect(listed.stdout).toMatch(
      new RegExp(
        `^${top} +owner [^\\n]*\\n└ (\\S+) +boss +child of run ${top} [^\\n]*\\n {2}└ ${child} +clerk +child of run \\1 `,
        'm',
      ),
    )
    const resumed = await tallystickHere('resume', shop.ledgerPath, child, '--yes', '--json', ...config)
    expect(resumed.stderr).not.toMatch(/error|threw/)
    expect(json(resumed.stdout)).toMatchObject({
      ...{ agent: 'clerk', text: 'Paid.' },
      parent: {
        agent: 'boss',
        text: 'All paid.',
        parent: { runId: top, agent: 'owner', text: 'All well.' },
      },
    })
  })

  it('says what takes the other further where that one was interrupted', async () => {
    await using shop = await openShop()
    const ledger = sqliteLedger(shop.ledgerPath)
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
    const hanging = scriptedModel([() => (ask(), { text: 'Let me th', hang: true })], 'clerk-model')
    const runtime = createRuntime({ ledger })
    const run = runtime.run({ ...boss(), tools: [agentTool({ ...clerk(), model: hanging })] }, 'Go.')
    const child = new Promise<RunId>((resolve) => {
      run.events$.subscribe((event) => event.type === 'tool_started' && resolve(event.child!))
    })
    await asked
    await runtime.drain(0)
    await ledger.close()
    const listed = await tallystickHere('list', shop.ledgerPath)
    expect(listed.stdout).toMatch(
      / interrupted in clerk call_\w+\n└ .* interrupted in the model call of turn 1\n/,
    )
    const resumed = await tallystickHere('resume', shop.ledgerPath, await child, '--yes', ...config)
    expect(resumed.code).toBe(0)
    expect(resumed.stderr).toContain(`  tallystick resume ${shop.ledgerPath} ${run.id}\n`)
    const later = await tallystickHere('resume', shop.ledgerPath, run.id, '--json', ...config)
    expect(json(later.stdout)).toMatchObject({ status: 'done', text: 'All paid.' })
  })

  it('leaves the other as it is where the one that was named is not done', async () => {
    await using shop = await openShop()
    const { child, call } = await waitingBoss(shop)
    const { code, stdout } = await tallystickHere('resume', shop.ledgerPath, child, '--json', ...config)
    expect(code).toBe(0)
    const result = json(stdout) as RunResult & { readonly parent?: unknown }
    expect(result).toMatchObject({ status: 'suspended', pendingApprovals: [{ toolCallId: call }] })
    expect(result.parent).toBeUndefined()
  })
})

describe('a ledger with a child run', () => {
  it('lists it under that one, says what the whole waits for, and means the one at the top by latest', async () => {
    await using shop = await openShop()
    const { parent, child, call } = await waitingBoss(shop)
    const { stdout } = await tallystickHere('list', shop.ledgerPath)
    const [heads, ...lines] = stdout.trimEnd().split('\n')
    expect(heads).toMatch(
      /^RUN +AGENT +PART OF +TURNS +CALLS +TOKENS +COST +TOOK +STARTED +INPUT +WORST +STATUS$/,
    )
    expect(lines[0]).toMatch(new RegExp(`^${parent} +boss .* suspended on pay ${call} of run ${child}$`))
    expect(lines[1]).toMatch(
      new RegExp(`^└ ${child} +clerk +child of run ${parent} .* suspended on pay ${call}$`),
    )
    const latest = await tallystickHere('show', shop.ledgerPath, 'latest', '--json')
    expect(json(latest.stdout)).toMatchObject({ runId: parent })
    const beginning = await tallystickHere('show', shop.ledgerPath, parent.slice(0, 8), '--json')
    expect(json(beginning.stdout)).toMatchObject({ runId: parent })
  })

  it('shows what the run below waits for, and no call that is open as if it had a result', async () => {
    await using shop = await openShop()
    const { parent, child, call } = await waitingBoss(shop)
    const { stdout } = await tallystickHere('show', shop.ledgerPath, parent)
    expect(stdout).toContain(`waiting  pay ${call} {"usd":5}, in run ${child}\n`)
    expect(stdout).toContain(`child    ${child} clerk, suspended on pay ${call}\n`)
    expect(stdout).toMatch(new RegExp(`╎ open +clerk call_\\w+ waits for run ${child}\n`))
    const below = await tallystickHere('show', shop.ledgerPath, child)
    expect(below.stdout).toContain(`part of  child of run ${parent}\n`)
    expect(below.stdout).toContain(`╎ open    pay ${call} waits for an approval\n`)
    for (const text of [stdout, below.stdout]) expect(text).not.toMatch(/skipped|interrupted/)
    const data = json((await tallystickHere('show', shop.ledgerPath, parent, '--json')).stdout)
    expect(data).toMatchObject({
      pendingApprovals: [{ runId: child, toolCallId: call, name: 'pay' }],
      deferredCalls: [],
      openCalls: [{ name: 'clerk', status: 'deferred', waits: `waits for run ${child}` }],
      childRuns: [{ runId: child, agent: 'clerk', status: 'suspended' }],
      messages: [{ role: 'user' }, { role: 'assistant' }],
    })
    const { parent: named } = json(
      (await tallystickHere('show', shop.ledgerPath, child, '--json')).stdout,
    ) as { parent: object }
    expect(named).toMatchObject({ runId: parent, relation: 'child' })
  })

  it('counts the turns, calls and tokens of both at the top', async () => {
    await using shop = await openShop()
    const { parent } = await waitingBoss(shop)
    await tallystickHere('resume', shop.ledgerPath, parent, '--yes', ...config)
    const { stdout } = await tallystickHere('list', shop.ledgerPath)
    expect(stdout).toMatch(new RegExp(`^${parent} +boss +4 +2 +44 .* done: answered$`, 'm'))
    expect(stdout).toMatch(/^└ \S+ +clerk +child of run \S+ +2 +1 +22 .* done: answered$/m)
    expect((await tallystickHere('show', shop.ledgerPath, parent)).stdout).toContain(
      'used     2 turns, 1 tool call, 1 child run with 2 turns and 1 tool call, 40 tokens in, 4 out\n',
    )
  })
})

describe('the order of runs in a list', () => {
  it('leaves out no run, also where some are parents of one another in a circle', () => {
    const [one, two, three, four] = [sampleRunId(1), sampleRunId(2), sampleRunId(3), sampleRunId(4)]
    const runs = [
      { runId: four, parent: three },
      { runId: three, parent: two },
      { runId: two, parent: three },
      { runId: one, parent: one },
    ]
    expect(sortByParent(runs).map(([{ runId }, depth]) => [runId, depth])).toEqual([
      [three, 0],
      [four, 1],
      [two, 0],
      [one, 0],
    ])
  })
})

it('waits until the end of the child run lies in the inbox of its parent', async () => {
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger }).run(boss(), 'Go.').result
  const child = pendingApprovals[0]!.runId
  const [call] = openTurnCalls(await foldTo(ledger, runId))
  const toolCallId = call!.toolCallId
  const steps: string[] = []
  const notified = awaitParentNotified(ledger, runId, child).then(() => steps.push('told'))
  const settle = async (key: string, child: RunId): Promise<void> => {
    const totals = { runId: child, turns: 1, toolCalls: 0, usage: {} }
    const command = { type: 'settle', toolCallId, outcome: 'success', content: [], child: totals } as const
    await ledger.put(runId, { key, command, at: 0 })
    await ledger.head(runId)
    steps.push(key)
  }
  await settle('of another', runId)
  await foldTo(ledger, runId)
  expect(steps).toEqual(['of another'])
  await settle('of this one', child)
  await notified
  expect(steps).toEqual(expect.arrayContaining(['of this one', 'told']))
  await awaitParentNotified(ledger, runId, child)
})

it('is nothing to wait for where the run does not wait for the other', async () => {
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger }).run(boss(), 'Go.').result
  const child = pendingApprovals[0]!.runId
  await awaitParentNotified(ledger, child, runId)
  expect((await ledger.inbox(child)).length).toBe(0)
})
