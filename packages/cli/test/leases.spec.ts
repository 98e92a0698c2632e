// Two processes and one run: who drives it, what the other one sees, and what happens when the driver dies.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NEVER } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type Run,
  type RunId,
  type RuntimeEvent,
  type RuntimeOptions,
  type Tool,
} from '@tallystick/core'
import {
  checkLaws,
  manualClock,
  scriptedModel,
  testTool,
  type ScriptedStep,
  type TestToolOptions,
} from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

/** What opens one ledger, once for each process. */
function store(kind: string): () => Ledger {
  if (kind === 'memory') {
    const ledger = memoryLedger()
    return () => ledger
  }
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-leases-'))
  const ledgers: Ledger[] = []
  onTestFinished(async () => {
    for (const ledger of ledgers) await ledger.close()
    rmSync(folder, { recursive: true })
  })
  return () => {
    const ledger = sqliteLedger(join(folder, 'runs.db'), { pollIntervalMs: 5 })
    ledgers.push(ledger)
    return ledger
  }
}

const payStep: ScriptedStep = { toolCalls: [{ name: 'pay', input: {} }] }

/** A process: its runtime, its tool, and what its host hears of. */
function worker(
  ledger: Ledger,
  tool: Omit<TestToolOptions, 'name'> | Tool = {},
  {
    steps = [payStep, { text: 'Paid.' }],
    host = {},
  }: { readonly steps?: readonly ScriptedStep[] } & Pick<RuntimeOptions, 'host'> = {},
) {
  const pay = 'inputSchema' in tool ? tool : testTool({ name: 'pay', effect: 'write', ...tool })
  const agent = defineAgent({
    name: 'teller',
    instructions: 'Pay.',
    model: scriptedModel(steps),
    tools: [pay],
  })
  const reported: string[] = []
  const report = (error: unknown): void => void reported.push(String(error))
  const runtime = createRuntime({ ledger, agents: [agent], host: { report, ...host } })
  return { ledger, runtime, agent, pay, reported }
}

/** Resolves when a handle has come to an event of a type. */
function until(run: Run, type: RuntimeEvent['type']): Promise<void> {
  return new Promise((resolve) => {
    run.events$.subscribe({ next: (event) => event.type === type && resolve(), error: () => {} })
  })
}

/** What a process that has died answers: nothing, as long as the test lasts. */
function never(): () => Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  onTestFinished(() => reject(new Error('The process is gone.')))
  return () => promise
}

const turn = (): Promise<unknown> => new Promise(setImmediate)

async function recorded(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const events = await Array.fromAsync(ledger.read(runId))
  expect(checkLaws(events)).toEqual([])
  return events
}

const countOf = (events: readonly RuntimeEvent[], type: RuntimeEvent['type']): number =>
  events.filter((event) => event.type === type).length

/** The rejections of this process that nobody handles, from now on. */
function unhandled(): unknown[] {
  const errors: unknown[] = []
  const onRejection = (error: unknown): void => void errors.push(error)
  process.on('unhandledRejection', onRejection)
  onTestFinished(() => void process.off('unhandledRejection', onRejection))
  return errors
}

describe.each(['memory', 'SQLite'])('given a run in %s that a process drives', (kind) => {
  it('when another resumes it within a long write, then that one follows, and the effect happens once', async () => {
    const open = store(kind)
    const gate = Promise.withResolvers<string>()
    const done: string[] = []
    const reconciled: string[] = []
    const write = (name: string): Omit<TestToolOptions, 'name'> => ({
      recovery: 'reconcile',
      run: async () => {
        const text = await gate.promise
        done.push(name)
        return text
      },
      reconcile: async () => {
        reconciled.push(name)
        return { state: 'not_done' }
      },
    })
    const [a, b] = [worker(open(), write('a')), worker(open(), write('b'))]
    const run = a.runtime.run(a.agent, 'Pay.')
    await until(run, 'tool_started')
    const theirs = b.runtime.resume(run.id)
    await until(theirs, 'tool_started')
    gate.resolve('paid')
    expect(await theirs.result).toMatchObject({ status: 'done', reason: 'answered' })
    expect(await run.result).toMatchObject({ status: 'done', reason: 'answered' })
    expect([done, reconciled]).toEqual([['a'], []])
    const events = await recorded(a.ledger, run.id)
    expect(countOf(events, 'tool_started')).toBe(1)
    expect(countOf(events, 'run_resumed')).toBe(0)
  })

  it('when a handle of a process that is behind sends a command, then it misses no event and no state', async () => {
    const open = store(kind)
    const gate = Promise.withResolvers<string>()
    const first = open()
    // No hint of what others record comes to this process.
    const deaf: Ledger = { ...first, changes: () => NEVER }
    const twice: ScriptedStep = { toolCalls: [payStep, payStep].flatMap(({ toolCalls = [] }) => toolCalls) }
    const asking = { check: () => ({ kind: 'ask' }) as const, run: () => gate.promise }
    const a = worker(deaf, asking, { steps: [twice, { text: 'Paid.' }] })
    const b = worker(open(), asking, { steps: [{ text: 'Paid.' }] })
    const run = a.runtime.run(a.agent, 'Pay.')
    const seqs: number[] = []
    const states: number[] = []
    const ended = new Promise<unknown>((resolve) => {
      run.events$.subscribe({
        next: ({ seq }) => seqs.push(seq),
        error: resolve,
        complete: () => resolve('complete'),
      })
    })
    const failed: unknown[] = []
    run.state$.subscribe({ next: ({ seq }) => states.push(seq), error: (error) => failed.push(error) })
    const { pendingApprovals } = await run.result
    const theirs = b.runtime.resume(run.id)
    expect(await theirs.approve(pendingApprovals[0]!, { by: 'bob' })).toEqual({ accepted: true })
    await until(theirs, 'tool_started')
    const mine = run.approve(pendingApprovals[1]!, { by: 'ada' })
    expect(await mine).toEqual({ accepted: true })
    gate.resolve('paid')
    expect(await theirs.result).toMatchObject({ reason: 'answered' })
    expect(await run.result).toMatchObject({ reason: 'answered' })
    expect(await ended).toBe('complete')
    const onRecord = (await recorded(b.ledger, run.id)).map(({ seq }) => seq)
    expect(seqs).toEqual(onRecord)
    expect(states.at(-1)).toBe(onRecord.at(-1))
    expect(failed).toEqual([])
  })

  it('when its process dies and the start is repeated with its key, then the caller is answered by one run', async () => {
    const open = store(kind)
    let isDead = false
    const view = open()
    const gone = never()
    const mortal: Ledger = {
      ...view,
      append: async (...given) => (isDead ? await gone() : await view.append(...given)),
      renew: async (...given) => (isDead ? await gone() : await view.renew(...given)),
      release: async (...given) => (isDead ? await gone() : await view.release(...given)),
    }
    const own = { name: 'process 1 on the-first', hasEnded: () => false }
    const a = worker(mortal, { run: gone }, { host: { process: own } })
    const order = { idempotencyKey: 'order-7' }
    const run = a.runtime.run(a.agent, 'Pay.', order)
    await until(run, 'tool_started')
    isDead = true
    const other = {
      name: 'process 2 on the-first',
      hasEnded: (name: string) => isDead && name.startsWith(own.name),
    }
    const b = worker(open(), {}, { steps: [{ text: 'It was interrupted.' }], host: { process: other } })
    const again = b.runtime.run(b.agent, 'Pay.', order)
    expect(await again.result).toMatchObject({ runId: run.id, status: 'done', reason: 'answered' })
    const events = await recorded(b.ledger, run.id)
    expect(countOf(events, 'run_started')).toBe(1)
    expect(countOf(events, 'run_resumed')).toBe(1)
    expect(countOf(events, 'tool_started')).toBe(1)
  })
})

it('given a run whose process died elsewhere, when its start is repeated, then it is taken over once its lease has ended', async () => {
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  let isDead = false
  const gone = never()
  const mortal: Ledger = {
    ...ledger,
    append: async (...given) => (isDead ? await gone() : await ledger.append(...given)),
    renew: async (...given) => (isDead ? await gone() : await ledger.renew(...given)),
  }
  const a = worker(mortal, { run: gone }, { host: { clock } })
  const order = { idempotencyKey: 'order-7' }
  const run = a.runtime.run(a.agent, 'Pay.', order)
  await until(run, 'tool_started')
  isDead = true
  const diedAt = clock.now()
  const b = worker(ledger, {}, { steps: [{ text: 'It was interrupted.' }], host: { clock } })
  const again = b.runtime.run(b.agent, 'Pay.', order)
  const results: unknown[] = []
  void again.result.then((ended) => results.push(ended))
  while (results.length === 0) {
    clock.advance(500)
    await turn()
  }
  expect(results).toMatchObject([{ runId: run.id, reason: 'answered' }])
  expect(clock.now() - diedAt).toBeGreaterThanOrEqual(12_000)
  expect(clock.now() - diedAt).toBeLessThanOrEqual(15_000)
  // Whoever waits is told why.
  expect(b.reported.join()).toContain('is driven by')
})

describe.each(['memory', 'SQLite'])('given a message that joined a run of another process, in %s', (kind) => {
  it.each(['driver fails', 'driver is drained', 'joiner is drained', 'ledger closes'])(
    'when the %s and nobody reads the result, then the process lives',
    async (what) => {
      const errors = unhandled()
      const open = store(kind)
      const view = open()
      let isBroken = false
      const broken: Ledger = {
        ...view,
        append: async (...given) => {
          if (isBroken) throw new Error('The disk is gone.')
          return await view.append(...given)
        },
      }
      const gate = Promise.withResolvers<void>()
      const a = worker(
        broken,
        {},
        {
          steps: [
            { text: 'One.', until: gate.promise },
            { text: 'Two.', hang: true },
          ],
        },
      )
      const b = worker(open())
      const run = a.runtime.run(a.agent, 'One.', { sessionId: 'chat' })
      run.result.catch(() => {})
      await until(run, 'assistant_started')
      const joining = b.runtime.session('chat').run(b.agent, 'Two.', { whenBusy: 'join' })
      const isSent = async () =>
        (await b.ledger.inbox(run.id)).length > 0 ||
        countOf(await recorded(b.ledger, run.id), 'input_received') > 1
      while (!(await isSent())) await turn()
      gate.resolve()
      const joined = await joining
      expect(joined.id).toBe(run.id)
      joined.events$.subscribe({ error: () => {} })
      isBroken = what === 'driver fails'
      if (isBroken) await run.cancel().catch(() => {})
      if (what === 'driver is drained') await a.runtime.drain(0)
      if (what === 'joiner is drained') await b.runtime.drain(0)
      if (what === 'ledger closes') await b.ledger.close()
      if (!isBroken) await a.runtime.drain(0)
      for (let turns = 0; turns < 20; turns++) await turn()
      expect(errors).toEqual([])
    },
  )
})
