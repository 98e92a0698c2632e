// A process that dies leaves its run unfinished, and with it the session. The next caller gets an error that names the
// run, says that no process drives it and what continues it. No caller waits for it for ever.
import { describe, expect, it } from 'vitest'
import {
  agentTool,
  defineAgent,
  LedgerConflictError,
  memoryLedger,
  type Ledger,
  type Run,
  type RunId,
  type RunResult,
} from '@tallystick/core'
import { manualClock, mortalLedger, scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { newProcess, readable } from './conversation.ts'
import { stage, type Stage } from './stage.ts'

const sessionId = 'chat'

/** A session whose first run was interrupted in its model call: its process died. */
async function crashed(
  ledger: Ledger = memoryLedger(),
): Promise<{ readonly set: Stage; readonly runId: RunId }> {
  const dying = newProcess({ ledger: mortalLedger(ledger, { append: 2, stored: false }) })
  const run = dying.runtime.run(dying.agent, 'Hello.', { sessionId })
  await expect(dying.waitUntilSettled(run.result)).rejects.toThrow('The process died here.')
  return {
    set: newProcess({ ledger, clock: dying.clock, steps: [{ text: 'One.' }, { text: 'Two.' }] }),
    runId: run.id,
  }
}

/** A run whose child run waits for an approval, and what makes further processes with its agents. */
async function delegated() {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const work = testTool({ name: 'work', check: () => ({ kind: 'ask' }) })
  const workerModel = scriptedModel([{ toolCalls: [{ name: 'work', input: {} }] }, { text: 'Worked.' }])
  const worker = defineAgent({ name: 'worker', instructions: 'Work.', model: workerModel, tools: [work] })
  const process = (to: Ledger, ...steps: readonly ScriptedStep[]): Stage =>
    newProcess({
      ...{ clock, ledger: to, steps },
      tools: [agentTool(worker, { name: 'delegate', description: 'Delegates.' })],
    })
  const first = process(ledger, { toolCalls: [{ name: 'delegate', input: { task: 'Do.' } }] })
  const { pendingApprovals, runId } = await first.play()
  return { ledger, process, first, runId, asked: pendingApprovals[0]! }
}

async function listed(runs: AsyncIterable<RunResult>): Promise<readonly RunId[]> {
  return (await Array.fromAsync(runs)).map(({ runId }) => runId)
}

/** The conflict that a run meets. */
async function conflictOf(set: Stage, run: Run | Promise<Run>): Promise<LedgerConflictError> {
  const error: unknown = await set.waitUntilSettled(
    Promise.resolve(run)
      .then(({ result }) => result)
      .catch((reason: unknown) => reason),
  )
  if (!(error instanceof LedgerConflictError)) throw new Error('The run met no conflict.')
  expect(error.kind).toBe('session')
  return error
}

describe('a run that was interrupted', () => {
  it('is listed, with those that wait left out, until a process has continued it', async () => {
    const { set, runId } = await crashed()
    expect(await listed(set.runtime.interrupted())).toEqual([runId])
    expect(await listed(set.runtime.suspended())).toEqual([])
    const [run] = await Array.fromAsync(set.runtime.interrupted())
    expect(run).toMatchObject({ status: 'interrupted', turns: 1, agent: 'agent' })
    expect(await set.waitUntilSettled(set.runtime.resume(runId).result)).toMatchObject({ text: 'One.' })
    expect(await listed(set.runtime.interrupted())).toEqual([])
  })

  it('is not listed while a process drives it, whichever it is', async () => {
    let end: () => void = () => {}
    const until = new Promise<void>((resolve) => (end = resolve))
    const one = stage({ steps: [{ text: 'One.', until }] })
    const other = newProcess({ ledger: one.ledger, clock: one.clock })
    const run = one.start()
    await new Promise((resolve) => run.events$.subscribe(resolve))
    expect(await listed(one.runtime.interrupted())).toEqual([])
    expect(await listed(other.runtime.interrupted())).toEqual([])
    end()
    await one.waitUntilSettled(run.result)
  })

  it('is listed where it is a child run, as its root', async () => {
    const { ledger, process, first, runId, asked } = await delegated()
    expect(await listed(first.runtime.interrupted())).toEqual([])
    await ledger.put(asked.runId, {
      ...{ key: 'k', at: first.clock.now() },
      command: { type: 'approve', toolCallId: asked.toolCallId, by: 'me' },
    })
    // The child run is taken up, and its process dies.
    const dying = process(mortalLedger(ledger, { append: 1, stored: true }))
    await dying.waitUntilSettled(dying.runtime.resume(asked.runId).result.catch(() => undefined))
    expect(await listed(first.runtime.interrupted())).toEqual([runId])
    expect(await listed(first.runtime.suspended())).toEqual([runId])
  })

  it('is listed where the process of its child run died before it had reported the end, and resume finds that end', async () => {
    const { ledger, process, first, runId, asked } = await delegated()
    // This process drives the child run to its end, and puts nothing into the inbox of the parent.
    const put: Ledger['put'] = (id, entry) =>
      id === runId ? Promise.reject(new Error('The process died here.')) : ledger.put(id, entry)
    const dying = process({ ...ledger, put })
    const child = dying.runtime.resume(asked.runId)
    expect(await dying.waitUntilSettled(child.approve(asked.toolCallId, { by: 'me' }))).toMatchObject({
      accepted: true,
    })
    await dying.waitUntilSettled(child.result.catch(() => undefined))
    expect(await listed(first.runtime.interrupted())).toEqual([runId])
    const next = process(ledger, { text: 'Done.' })
    expect(await next.waitUntilSettled(next.runtime.resume(runId).result)).toMatchObject({ text: 'Done.' })
    expect(readable(next.model.requests[0]!.messages)).toContain('delegate success: Worked.')
    expect(await listed(first.runtime.interrupted())).toEqual([])
  })
})

describe('a session whose run was interrupted', () => {
  it.each(['conflict', 'wait', 'join'] as const)(
    'tells who comes with %s that resume continues it',
    async (whenBusy) => {
      const { set, runId } = await crashed()
      const next = set.runtime.session(sessionId).run(set.agent, 'And now?', { whenBusy })
      const { message, busy } = await conflictOf(set, next)
      expect(busy).toEqual({ runId, status: 'interrupted' })
      expect(message).toContain(`Run ${runId} of session chat was interrupted`)
      expect(message).toContain(`runtime.resume('${runId}') continues it`)
      expect(await set.ledger.inbox(runId)).toEqual([])
      await set.waitUntilSettled(set.runtime.resume(runId).result)
      const again = await set.runtime.session(sessionId).run(set.agent, 'And now?', { whenBusy })
      expect(await set.waitUntilSettled(again.result)).toMatchObject({ text: 'Two.' })
    },
  )

  it('ends waiting when the process that is waited for dies meanwhile', async () => {
    const ledger = memoryLedger()
    let end: () => void = () => {}
    const until = new Promise<void>((resolve) => (end = resolve))
    const dying = newProcess({
      ledger: mortalLedger(ledger, { append: 3, stored: false }),
      steps: [{ text: 'Never.', until }],
    })
    const first = dying.runtime.run(dying.agent, 'Hello.', { sessionId })
    first.result.catch(() => undefined)
    await new Promise((resolve) => first.events$.subscribe({ next: resolve, error: () => undefined }))
    const set = newProcess({ ledger, clock: dying.clock })
    const waiting = set.runtime.run(set.agent, 'And now?', { sessionId, whenBusy: 'wait' })
    const joined = set.runtime.session(sessionId).run(set.agent, 'And now?', { whenBusy: 'join' })
    const conflicts = Promise.all([conflictOf(set, waiting), conflictOf(set, joined)])
    await joined.catch(() => undefined)
    end()
    for (const { busy, message } of await conflicts) {
      expect(busy).toMatchObject({ runId: first.id, status: 'interrupted' })
      expect(message).toContain('so waiting for it would never end')
    }
  })

  it('lets a runtime that waits for it be drained', async () => {
    const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
    const set = stage({ steps: [{ toolCalls: [{ name: 'pay', input: {} }] }], tools: [pay] })
    await set.waitUntilSettled(set.runtime.run(set.agent, 'Pay.', { sessionId }).result)
    const next = set.runtime.run(set.agent, 'And now?', { sessionId, whenBusy: 'wait' })
    const conflict = conflictOf(set, next)
    expect(await set.waitUntilSettled(set.runtime.drain(0))).toEqual([])
    expect((await conflict).message).toContain('The runtime was drained while it waited for run')
  })
})
