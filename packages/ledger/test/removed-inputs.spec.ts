// Law 13: a call whose input was removed from the record never starts, whatever it waited for.
import { join } from 'node:path'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type Ledger,
  type RunOptions,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import {
  checkLaws,
  scriptedModel,
  testTool,
  type ScriptedStep,
  type TestTool,
  type TestToolOptions,
} from '@tallystick/testkit'
import { applyRetention, exportEvents, importEvents, redact, verifyRun } from '@tallystick/ledger'
import { sqliteKeyring, sqliteLedger, type SqliteKeyring } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from './support/temporary-folder.ts'

const input = { usd: 5 }
const asked: ScriptedStep = { toolCalls: [{ name: 'pay', input }] }
/** Lets what is under way come on. */
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
const forever = (): Promise<string> => new Promise(() => {})

function open(): Ledger {
  const ledger = sqliteLedger(join(temporaryFolder(), 'runs.db'))
  onTestFinished(() => ledger.close())
  return ledger
}

/** One process with one agent. */
function processOf(ledger: Ledger, tools: readonly Tool[], steps: readonly ScriptedStep[]) {
  const model = scriptedModel(steps)
  const agent: Agent = defineAgent({ name: 'cashier', instructions: 'Pay.', tools, model })
  const runtime = createRuntime({ ledger, agents: [agent], host: { report: () => {} } })
  return { agent, runtime }
}

async function eventsOf(ledger: Ledger, runId: string): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId as never)) events.push(event)
  return events
}

const startsOf = (events: readonly RuntimeEvent[]): number =>
  events.filter(({ type }) => type === 'tool_started').length

/** What a run leaves behind whose process stops while a call of `pay` waits, or is at work. */
interface Left {
  readonly pay: TestToolOptions
  /** Calls in front of it in the same reply, which do not end. */
  readonly before?: TestToolOptions
  readonly starts: number
  readonly outcome: string
}

const left: { readonly [state: string]: Left } = {
  'is ready behind another write': {
    pay: { name: 'pay', effect: 'write' },
    before: { name: 'slow', effect: 'write', run: forever },
    starts: 1,
    outcome: 'skipped',
  },
  'waits for an approval': {
    pay: { name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) },
    starts: 0,
    outcome: 'skipped',
  },
  'waits for its next attempt': {
    pay: {
      name: 'pay',
      effect: 'write',
      retry: { maxAttempts: 3, baseMs: 60_000, capMs: 60_000, maxRetryAfterMs: 0 },
      run: () => Promise.reject(new Error('busy')),
    },
    starts: 1,
    outcome: 'failed',
  },
  ...Object.fromEntries(
    (['report', 'rerun', 'ask', 'reconcile'] as const).map((recovery) => [
      `is in doubt, with the recovery ${recovery}`,
      {
        pay: {
          ...{ name: 'pay', effect: 'write' as const, recovery, run: forever },
          ...(recovery === 'reconcile' && { reconcile: () => ({ state: 'not_done' as const }) }),
        },
        starts: 1,
        outcome: 'interrupted',
      },
    ]),
  ),
  'is a read in doubt': { pay: { name: 'pay', run: forever }, starts: 1, outcome: 'interrupted' },
}

/** Lets a run stop in a state, with a call of `pay` open. */
async function leave(
  ledger: Ledger,
  { pay, before, starts }: Left,
  options: RunOptions = {},
): Promise<string> {
  const tools = [...(before ? [testTool(before)] : []), testTool(pay)]
  const calls = tools.map(({ name }) => ({ name, input }))
  const first = processOf(ledger, tools, [{ toolCalls: calls }])
  const run = first.runtime.run(first.agent, 'Go.', options)
  const stopped = run.result.catch(() => {})
  for (let round = 0; round < 200 && startsOf(await eventsOf(ledger, run.id)) < starts; round++) {
    await nextTurn()
  }
  if (pay.retry || starts === 0) {
    const isThere = async (type: string): Promise<boolean> =>
      (await eventsOf(ledger, run.id)).some((event) => event.type === type)
    const type = pay.retry ? 'tool_attempt_failed' : 'approval_requested'
    for (let round = 0; round < 200 && !(await isThere(type)); round++) await nextTurn()
  }
  await first.runtime.drain(0)
  await stopped
  return run.id
}

async function ends(ledger: Ledger, runId: string): Promise<readonly (readonly [string, string])[]> {
  const events = await eventsOf(ledger, runId)
  return events.flatMap((event) =>
    event.type === 'tool_result' && event.name === 'pay'
      ? [[event.outcome, JSON.stringify(event.content)] as const]
      : [],
  )
}

describe('given a call whose input was removed from the record', () => {
  it.each(Object.entries(left))(
    'when it %s, then a resume gives it a result and never starts it',
    async (_state, at) => {
      const ledger = open()
      const runId = await leave(ledger, at)
      const starts = startsOf(await eventsOf(ledger, runId))
      await redact(ledger, runId as never, 'all', { by: 'ada', reason: 'asked to' })
      const pay = testTool(at.pay)
      const tools = [...(at.before ? [testTool({ ...at.before, recovery: 'report' })] : []), pay]
      const second = processOf(ledger, tools, [{ text: 'Done.' }])
      const result = await second.runtime.resume(runId).result
      expect(result).toMatchObject({ status: 'done', reason: 'answered', pendingApprovals: [] })
      expect(pay.runs).toEqual([])
      const [[outcome, text] = []] = await ends(ledger, runId)
      expect(outcome).toBe(at.outcome)
      expect(text).toMatch(/input .*was removed from the record/)
      expect(startsOf(await eventsOf(ledger, runId))).toBe(starts)
      expect(await verifyRun(ledger, runId as never)).toMatchObject({ ok: true })
    },
  )

  it('when somebody approves it, then the approval is refused with the reason, and the run goes on', async () => {
    const ledger = open()
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const first = processOf(ledger, [pay], [asked, { text: 'Done.' }])
    const run = first.runtime.run(first.agent, 'Go.')
    const { pendingApprovals } = await run.result
    await first.runtime.drain(0)
    await redact(ledger, run.id, 'all', { by: 'ada', reason: 'asked to' })
    const second = processOf(ledger, [pay], [{ text: 'Done.' }])
    const again = second.runtime.resume(run.id)
    const decided = again.approve(pendingApprovals[0]!.toolCallId, { by: 'bob' })
    await expect(decided).resolves.toMatchObject({ accepted: false })
    await again.result
    expect(pay.runs).toEqual([])
  })

  it('when its input is still in its request, then an approval of what was shown before counts', async () => {
    const ledger = open()
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const first = processOf(ledger, [pay], [asked])
    const run = first.runtime.run(first.agent, 'Go.')
    const { pendingApprovals } = await run.result
    await first.runtime.drain(0)
    const collected = (await eventsOf(ledger, run.id)).filter(
      ({ type }) => type === 'tool_requests_collected',
    )
    const seqs = collected.map(({ seq }) => seq)
    await redact(ledger, run.id, seqs, { by: 'ada', reason: 'asked to' })
    const second = processOf(ledger, [pay], [{ text: 'Done.' }])
    const again = second.runtime.resume(run.id)
    await expect(again.approve(pendingApprovals[0]!, { by: 'bob' })).resolves.toMatchObject({
      accepted: true,
    })
    await again.result
    expect(pay.runs.map(({ input: used }) => used)).toEqual([input])
    expect(checkLaws(await eventsOf(ledger, run.id))).toEqual([])
  })

  it.each([
    'tool_request_ready',
    'tool_requests_collected',
    'approval_requested',
    'approval_decided',
  ] as const)(
    'when only %s was removed of a call with an edited input, then what is left decides',
    async (type) => {
      const ledger = open()
      const slow = testTool({ name: 'slow', effect: 'write', run: forever })
      const make = (): TestTool => testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
      const first = processOf(
        ledger,
        [slow, make()],
        [
          {
            toolCalls: [
              { name: 'slow', input },
              { name: 'pay', input },
            ],
          },
        ],
      )
      const run = first.runtime.run(first.agent, 'Go.')
      run.result.catch(() => {})
      let call: string | undefined
      while (call === undefined) {
        await nextTurn()
        const events = await eventsOf(ledger, run.id)
        call = events.find((event) => event.type === 'approval_requested')?.toolCallId
      }
      await run.approve(call, { by: 'ada', input: { usd: 3 } })
      await first.runtime.drain(0)
      const seqs = (await eventsOf(ledger, run.id))
        .filter((event) => event.type === type)
        .map(({ seq }) => seq)
      await redact(ledger, run.id, seqs, { by: 'ada', reason: 'asked to' })
      const pay = make()
      const second = processOf(ledger, [slow, pay], [{ text: 'Done.' }])
      await second.runtime.resume(run.id).result
      const ran = pay.runs.map(({ input: used }) => used)
      expect(ran).toEqual(type === 'approval_decided' ? [] : [{ usd: 3 }])
      expect(checkLaws(await eventsOf(ledger, run.id))).toEqual([])
    },
  )

  it('when its work is a child run that was left, then the child is told to stop and what it used counts', async () => {
    const ledger = open()
    const look = testTool({ name: 'look', run: forever })
    const usage = { inputTokens: 7, outputTokens: 3 }
    const kid = defineAgent({
      ...{ name: 'kid', description: 'Helps.', instructions: 'Help.', tools: [look] },
      model: scriptedModel([
        { toolCalls: [{ name: 'look', input: {} }], usage },
        { text: 'Helped.', usage },
      ]),
    })
    const steps: readonly ScriptedStep[] = [{ toolCalls: [{ name: 'kid', input: { task: 'x' } }] }]
    const first = processOf(ledger, [agentTool(kid)], steps)
    const run = first.runtime.run(first.agent, 'Go.')
    run.result.catch(() => {})
    while (look.runs.length === 0) await nextTurn()
    await first.runtime.drain(0)
    await redact(ledger, run.id, 'all', { by: 'ada', reason: 'asked to' })
    const second = processOf(ledger, [agentTool(kid)], [{ text: 'Done.' }])
    const result = await second.runtime.resume(run.id).result
    expect(result).toMatchObject({ reason: 'answered', children: { runs: 1, turns: 1 }, usage })
    expect(look.runs).toHaveLength(1)
    expect(await verifyRun(ledger, run.id)).toMatchObject({ ok: true })
  })

  it('when its run is forked or imported, then it does not start there either', async () => {
    const source = open()
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const first = processOf(source, [pay], [asked])
    const run = first.runtime.run(first.agent, 'Go.')
    await run.result
    await first.runtime.drain(0)
    const events = await eventsOf(source, run.id)
    await redact(source, run.id, 'all', { by: 'ada', reason: 'asked to' })
    const imported = open()
    await importEvents(imported, exportEvents(source))
    const elsewhere = memoryLedger()
    await importEvents(elsewhere, exportEvents(source))
    for (const ledger of [source, imported, elsewhere]) {
      for (const { seq, type } of events.slice(1)) {
        for (const writes of ['ask', 'run'] as const) {
          const next = processOf(ledger, [pay], [{ text: 'Done.' }])
          const fork = next.runtime.fork(run.id, { atSeq: seq, writes })
          const { status } = await fork.result
          expect({ type, writes, status }).toEqual({ type, writes, status: 'done' })
          expect(checkLaws(await eventsOf(ledger, fork.id))).toEqual([])
        }
      }
    }
    expect(pay.runs).toEqual([])
  })
})

it('the result of a run whose typed answer was removed has null in its place', async () => {
  const ledger = open()
  const output = { type: 'object', properties: { usd: { type: 'number' } }, required: ['usd'] } as const
  const model = scriptedModel([{ text: '{"usd":5}' }])
  const agent = defineAgent({ name: 'typed', instructions: 'Sum up.', model, output })
  const runtime = () => createRuntime({ ledger, agents: [agent], host: { report: () => {} } })
  const { runId } = await runtime().run(agent, 'Go.').result
  expect(await runtime().resume(runId).result).toMatchObject({ output: { usd: 5 } })
  await redact(ledger, runId, 'all', { by: 'ada', reason: 'asked to' })
  expect(await runtime().resume(runId).result).toMatchObject({ status: 'done', output: null })
})

/** How the input of a call comes to be gone from the record of a run that has ended. */
interface Loss {
  readonly run?: RunOptions
  readonly remove: (ledger: Ledger, runId: string, keys: SqliteKeyring) => Promise<unknown>
}

const losses: { readonly [how: string]: Loss } = {
  'was redacted': {
    remove: (ledger, runId) => redact(ledger, runId as never, 'all', { by: 'ada', reason: 'asked to' }),
  },
  'went with the end of a run of which only digests stay': {
    run: { recording: { content: 'digests' } },
    remove: async () => {},
  },
  'went with the key of its subject': {
    run: { subject: 'customer-7' },
    remove: (_ledger, _runId, keys) => keys.destroy('customer-7'),
  },
  'was older than is kept': {
    remove: (ledger) => applyRetention(ledger, { contentMs: 0 }, { now: 8_000_000_000_000 }),
  },
}

/** A write whose wrong input is repaired, whatever it is. */
const repairing = (options: TestToolOptions): TestTool => ({
  ...testTool({
    ...options,
    check: (given) =>
      given['usd'] === 5
        ? { kind: 'run' }
        : { kind: 'refuse', outcome: 'invalid_input', text: 'usd is not a number' },
  }),
  repair: () => ({ input, repairs: ['usd was taken for a number'] }),
})

const tellers: {
  readonly [what: string]: readonly [make: (options: TestToolOptions) => TestTool, asked: ScriptedStep]
} = {
  'as the model wrote it': [testTool, asked],
  'as it was repaired': [repairing, { toolCalls: [{ name: 'pay', input: { usd: '5' } }] }],
}

describe('given a run whose content is gone', () => {
  const cases = Object.keys(losses).flatMap((how) => Object.keys(tellers).map((what) => [what, how] as const))

  it.each(cases)(
    'when the input of a call, %s, %s, then no fork starts it without that input',
    async (what, how) => {
      const [{ run: options = {}, remove }, [make, step]] = [losses[how]!, tellers[what]!]
      const keys = sqliteKeyring(join(temporaryFolder(), 'keys.db'))
      onTestFinished(() => keys.close())
      const ledger = sqliteLedger(join(temporaryFolder(), 'runs.db'), { keys })
      onTestFinished(() => ledger.close())
      const pay = make({ name: 'pay', effect: 'write' })
      const first = processOf(ledger, [pay], [step, { text: 'Done.' }])
      const run = first.runtime.run(first.agent, 'Go.', options)
      expect(await run.result).toMatchObject({ reason: 'answered' })
      await first.runtime.idle()
      expect(pay.runs.map(({ input: used }) => used)).toEqual([input])
      await remove(ledger, run.id, keys)
      const left = await eventsOf(ledger, run.id)
      expect(left.find(({ type }) => type === 'tool_request_ready')?.removed).toBeDefined()

      for (const { seq, type } of left.slice(1, -1)) {
        for (const writes of ['ask', 'run'] as const) {
          const next = processOf(ledger, [pay], [{ text: 'Done.' }, { text: 'Done.' }])
          const fork = next.runtime.fork(run.id, { atSeq: seq, writes })
          const { status } = await fork.result
          expect({ type, writes, status }).toEqual({ type, writes, status: 'done' })
          expect(checkLaws(await eventsOf(ledger, fork.id))).toEqual([])
          expect(await verifyRun(ledger, fork.id)).toMatchObject({ ok: true })
        }
      }
      expect(pay.runs).toHaveLength(1)
    },
  )

  it.each(Object.entries(left))(
    'when the key of the subject is destroyed while a call %s, then no resume starts it',
    async (_state, at) => {
      const keys = sqliteKeyring(join(temporaryFolder(), 'keys.db'))
      onTestFinished(() => keys.close())
      const ledger = sqliteLedger(join(temporaryFolder(), 'runs.db'), { keys })
      onTestFinished(() => ledger.close())
      const runId = await leave(ledger, at, { subject: 'customer-7' })
      const starts = startsOf(await eventsOf(ledger, runId))
      await keys.destroy('customer-7')
      const pay = testTool(at.pay)
      const tools = [...(at.before ? [testTool({ ...at.before, recovery: 'report' })] : []), pay]
      const second = processOf(ledger, tools, [{ text: 'Done.' }])
      await expect(second.runtime.resume(runId).result).rejects.toThrow(/that key was destroyed/)
      expect(pay.runs).toEqual([])
      expect(startsOf(await eventsOf(ledger, runId))).toBe(starts)
      expect(await verifyRun(ledger, runId as never)).toMatchObject({ ok: true })
    },
  )
})
