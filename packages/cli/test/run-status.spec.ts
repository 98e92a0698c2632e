import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createRuntime, defineAgent, type Agent } from '@tallystick/core'
import type { RunSummary } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel, type ScriptedStep, sampleCallId, sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { formatStatus, toSummaryStatusView, type WaitedFor } from '../src/runs/run-status.ts'
import { boss } from './kit/office.ts'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const agentOf = (name: string, steps: readonly ScriptedStep[], handoffs: readonly Agent[] = []): Agent =>
  defineAgent({
    ...{ name, description: `Is ${name}.`, instructions: '', handoffs },
    model: scriptedModel(steps, `${name}-model`),
  })

/** What the command printed, an object a line. */
const objects = (text: string): readonly unknown[] => text.trimEnd().split('\n').map(json)

describe('list and show', () => {
  it('say which session a run is of, at which place, and list one session with its child runs', async () => {
    await using shop = await openShop()
    const first = await shop.start(agentOf('host', [{ text: 'Hello.' }]), { sessionId: 'chat' })
    const second = await shop.start(boss(), { sessionId: 'chat' })
    const other = await shop.start(agentOf('host', [{ text: 'Hello.' }]))
    const all = await tallystickHere('list', shop.ledgerPath)
    expect(all.stdout).toMatch(new RegExp(`^${other.runId} +host +1 `, 'm'))
    const listed = await tallystickHere('list', shop.ledgerPath, '--session', 'chat')
    expect(listed.stdout.trimEnd().split('\n').slice(1)).toEqual([
      expect.stringMatching(new RegExp(`^${second.runId} +boss +run 2 of session chat `)),
      expect.stringMatching(new RegExp(`^└ \\S+ +clerk +child of run ${second.runId} `)),
      expect.stringMatching(new RegExp(`^${first.runId} +host +run 1 of session chat `)),
    ])
    const { stdout } = await tallystickHere('list', shop.ledgerPath, '--session', 'chat', '--json')
    const parent = { runId: first.runId, seq: first.seq, relation: 'session' }
    expect(objects(stdout)).toMatchObject([
      { runId: second.runId, sessionId: 'chat', sessionPlace: 2, parent },
      { agent: 'clerk', parent: { runId: second.runId, relation: 'child' } },
      { runId: first.runId, sessionId: 'chat', sessionPlace: 1 },
    ])
    const shown = await tallystickHere('show', shop.ledgerPath, second.runId)
    expect(shown.stdout).toContain(`part of  run 2 of session chat, continues run ${first.runId}\n`)
    expect(await tallystickHere('list', shop.ledgerPath, '--session', 'none')).toEqual({
      ...{ code: 0, stdout: '' },
      stderr: 'This ledger holds no runs of session none.\n',
    })
  })

  it('name all agents that had the conversation, in order', async () => {
    await using shop = await openShop()
    const billing = agentOf('billing', [{ text: 'I am billing.' }])
    const transfer: ScriptedStep = { toolCalls: [{ name: 'transfer_to_billing', input: { reason: 'x' } }] }
    const { runId } = await shop.start(agentOf('triage', [transfer], [billing]))
    expect((await tallystickHere('show', shop.ledgerPath, runId)).stdout).toContain(
      'agent    triage → billing, model billing-model\n',
    )
    const before = await tallystickHere('show', shop.ledgerPath, runId, '--at', '3')
    expect(before.stdout).toContain('agent    triage, model triage-model\n')
    const listed = await tallystickHere('list', shop.ledgerPath, '--json')
    expect(json(listed.stdout)).toMatchObject({ agent: 'billing', agents: ['triage', 'billing'] })
    expect((await tallystickHere('list', shop.ledgerPath)).stdout).toContain(`${runId}  triage → billing  `)
  })

  it('say why a run ended, in detail', async () => {
    await using shop = await openShop()
    const { runId, detail = '' } = await shop.start(agentOf('host', [{ fail: 'authentication' }]))
    expect(detail).not.toBe('')
    const listed = await tallystickHere('list', shop.ledgerPath)
    expect(listed.stdout).toContain(`done: model_failed (${detail})\n`)
    for (const words of [['list'], ['show', runId]] as const) {
      const [verb, ...rest] = words
      const { stdout } = await tallystickHere(verb, shop.ledgerPath, ...rest, '--json')
      expect(json(stdout)).toMatchObject({ status: 'done', reason: 'model_failed', detail })
    }
  })

  it('list the runs of the asked status', async () => {
    await using shop = await openShop()
    const done = await shop.start(agentOf('host', [{ text: 'Hello.' }]))
    const waiting = await shop.start()
    const idsOf = async (status: string): Promise<readonly unknown[]> => {
      const { stdout } = await tallystickHere('list', shop.ledgerPath, '--json', '--status', status)
      return stdout === '' ? [] : objects(stdout).map((run) => (run as { runId: string }).runId)
    }
    expect(await idsOf('suspended')).toEqual([waiting.runId])
    expect(await idsOf('done')).toEqual([done.runId])
    expect(await idsOf('interrupted')).toEqual([])
    expect((await tallystickHere('list', shop.ledgerPath, '--status', 'asleep')).code).toBe(2)
  })
})

describe('a run of which work was under way', () => {
  it('is under way while a process drives runs, and interrupted when none does', async () => {
    await using shop = await openShop()
    const ledger = sqliteLedger(shop.ledgerPath)
    const runtime = createRuntime({ ledger })
    const run = runtime.run(agentOf('host', [{ text: 'Let me th', hang: true }]), 'Hello.')
    await new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => type === 'assistant_text_delta' && resolve())
    })
    const during = json((await tallystickHere('list', shop.ledgerPath, '--json')).stdout)
    expect(during).toMatchObject({ status: 'under_way', detail: 'the model call of turn 1' })
    await runtime.drain(0)
    // Having the ledger open is not driving its runs.
    const { stdout } = await tallystickHere('list', shop.ledgerPath)
    expect(stdout).toContain(' interrupted in the model call of turn 1\n')
    expect((await tallystickHere('show', shop.ledgerPath, run.id)).stdout).toContain(
      'status   interrupted in the model call of turn 1\n',
    )
    await ledger.close()
  })

  it('is interrupted when its process was killed', async () => {
    await using shop = await openShop()
    const driver = spawn(process.execPath, [
      fileURLToPath(import.meta.resolve('./kit/hang.ts')),
      shop.ledgerPath,
    ])
    await once(driver.stdout, 'data')
    const standing = async (): Promise<unknown> =>
      json((await tallystickHere('list', shop.ledgerPath, '--json')).stdout)
    expect(await standing()).toMatchObject({ status: 'under_way', lastEventAt: expect.any(String) as string })
    driver.kill('SIGKILL')
    await once(driver, 'close')
    expect(await standing()).toMatchObject({ status: 'interrupted' })
  })
})

const runId = sampleRunId(1)
const child = sampleRunId(2)
const toolCallId = sampleCallId(runId)
const none: WaitedFor = { approvals: [], deferred: [], children: [] }

/** What is said of a run of this summary. */
function reported(
  summary: Partial<RunSummary>,
  { waits = none, isDriven = false, detail }: { waits?: WaitedFor; isDriven?: boolean; detail?: string } = {},
): string {
  const whole = {
    runId,
    turn: 2,
    started: [],
    isStreaming: false,
    waits: {},
    ...summary,
  } as unknown as RunSummary
  return formatStatus(
    toSummaryStatusView(whole, { waits, isDriven, ...(detail !== undefined && { detail }) }),
  )
}

describe('the status of a run in words', () => {
  it('given a run that has ended, when it is shown, then with its reason, and its detail where there is one', () => {
    expect(reported({ status: 'done', reason: 'answered' })).toBe('done: answered')
    expect(reported({ status: 'failed', reason: 'model_failed' }, { detail: 'Try\nlater.' })).toBe(
      'done: model_failed (Try later.)',
    )
    expect(reported({ status: 'done', reason: 'answered' }, { detail: ' ' })).toBe('done: answered')
  })

  it('given calls that wait, when they are shown, then each with its run, where that is another one', () => {
    const call = { runId, toolCallId, name: 'pay' }
    const other = { runId: child, toolCallId, name: 'ship' }
    const suspended = { status: 'suspended' } as const
    expect(reported(suspended, { waits: { ...none, approvals: [call], deferred: [other] } })).toBe(
      `suspended on pay ${toolCallId}, ship ${toolCallId} of run ${child}`,
    )
    const childWait = { toolCallId, name: 'ask', runId: child }
    const working = { ...childWait, status: 'unfinished' as const }
    const waiting = { ...childWait, status: 'suspended' as const }
    expect(reported(suspended, { waits: { ...none, approvals: [call], children: [waiting, working] } })).toBe(
      `suspended on pay ${toolCallId}, run ${child}, which is unfinished`,
    )
    expect(reported(suspended, { waits: { ...none, children: [waiting] } })).toBe(`suspended on run ${child}`)
  })

  it('given nothing that waits, when it is shown, then the limit that was met, or else an input', () => {
    const limit = { limit: { limit: 'maxTurns', max: 3 } } as never
    expect(reported({ status: 'suspended', waits: limit })).toBe('suspended on the limit maxTurns')
    expect(reported({ status: 'suspended' })).toBe('suspended on an input')
  })

  it('given work under way, when it is shown, then what it is, and whether a process may be at it', () => {
    const status = 'unfinished'
    const started = [{ toolCallId, name: 'look' }] as RunSummary['started']
    expect(reported({ status, isStreaming: true, started })).toBe('interrupted in the model call of turn 2')
    expect(reported({ status, started }, { isDriven: true })).toBe(`under way: look ${toolCallId}`)
    expect(reported({ status })).toBe('interrupted in turn 2')
    expect(reported({ status, turn: 0 })).toBe('interrupted in its beginning')
  })

  it('given a detail that is long, when there is little room, then it is cut', () => {
    const view = { status: 'continued', detail: '0123456789' } as const
    expect(formatStatus(view, 5)).toBe('under way: 0123…')
    expect(formatStatus(view)).toBe('under way: 0123456789')
  })
})
