import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  approvalTokens,
  type ApprovalPolicy,
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type Run,
  type RunOptions,
  type Runtime,
  type RuntimeEvent,
} from '@tallystick/core'
import type { ToolEffect } from '@tallystick/core/vocabulary'
import { foldTo, redact, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { replayRun } from '@tallystick/replay'
import {
  checkLaws,
  type ManualClock,
  manualClock,
  type ScriptedReply,
  scriptedModel,
  seededRandom,
  type TestTool,
  testTool,
} from '@tallystick/testkit'
import { afterEach, describe, expect, it } from 'vitest'

const pay = (usd: number): ScriptedReply => ({ toolCalls: [{ name: 'pay', input: { usd } }] })
const twoOfFinance: ApprovalPolicy = ({ effect }) =>
  effect === 'read' ? 'run' : { ask: 'Money leaves.', approvers: { count: 2, roles: ['finance'] } }
const asks: ApprovalPolicy = ({ effect }) => (effect === 'read' ? 'run' : 'ask')
const finance = { roles: ['finance'] }
const hour = 3_600_000

interface Desk {
  readonly clock: ManualClock
  readonly ledger: Ledger
  readonly tool: TestTool
  readonly runtime: Runtime
  readonly agent: ReturnType<typeof defineAgent>
  start(options?: RunOptions): Run
}

let desks = 0

/** An agent that asks for these calls in its runs, one after another, and ends each with a text. */
function desk(
  replies: readonly ScriptedReply[],
  approval: ApprovalPolicy,
  {
    effect = 'write',
    ledger = memoryLedger(),
    ...own
  }: { effect?: ToolEffect; ledger?: Ledger; description?: string } = {},
): Desk {
  const clock = manualClock()
  const hold = testTool({ name: 'hold', effect })
  const tool = testTool({ name: 'pay', effect, run: () => 'paid' })
  const tools = [{ ...tool, ...own }, hold]
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Pay.',
    model: scriptedModel(replies),
    tools,
    approval,
  })
  const runtime = createRuntime({
    ledger,
    agents: [agent],
    host: { clock, random: seededRandom(++desks), report: () => {} },
  })
  return { clock, ledger, tool, runtime, agent, start: (options) => runtime.run(agent, 'Go.', options) }
}

async function read(ledger: Ledger, runId: string): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId as never)) events.push(event)
  return events
}

/** Holds a run to the laws, to its replay, and to its fold at each event. */
async function judge({ ledger, agent }: Desk, runId: string): Promise<readonly RuntimeEvent[]> {
  const events = await read(ledger, runId)
  expect(checkLaws(events)).toEqual([])
  expect(await replayRun(ledger, runId as never, () => agent)).toEqual({ runId, events: events.length })
  for (const { seq } of events) await foldTo(ledger, runId as never, seq)
  return events
}

async function requireVerified(ledger: Ledger): Promise<void> {
  for await (const verdict of verifyLedger(ledger)) expect(verdict).toMatchObject({ ok: true })
}

const types = (events: readonly RuntimeEvent[]) =>
  events.map(({ type }) => type).filter((type) => type.startsWith('approval') || type === 'tool_started')

const opened: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})
function sqlite(): Ledger {
  const folder = mkdtempSync(join(tmpdir(), 'approvers-'))
  const ledger = sqliteLedger(join(folder, 'runs.db'))
  opened.push(async () => {
    await ledger.close()
    rmSync(folder, { recursive: true })
  })
  return ledger
}

describe('a call whose input an approver changes to one that demands other approvers', () => {
  const byAmount: ApprovalPolicy = ({ input: { usd }, effect }) => {
    if (effect === 'read' || usd === 0) return 'run'
    if (Number(usd) <= 100) return 'ask'
    return { ask: 'Much.', approvers: Number(usd) > 1_000 ? { count: 2 } : { roles: ['finance'] } }
  }

  it('runs with it only if the approver is all that the changed input demands', async () => {
    const at = desk([pay(5), { text: 'Paid.' }], byAmount, { ledger: sqlite() })
    const run = at.start({ owner: 'olga' })
    const [asked] = (await run.result).pendingApprovals
    const give = (by: string, usd: number, roles?: readonly string[]) =>
      run.approve(asked!, { by, input: { usd }, ...(roles && { roles }) })
    expect(await give('ann', 500)).toMatchObject({ accepted: false, code: 'not_an_approver' })
    expect(await give('olga', 500, ['finance'])).toMatchObject({ code: 'not_an_approver' })
    expect(await give('ann', 5_000, ['finance'])).toMatchObject({
      code: 'not_supported',
      message: expect.stringContaining('several people'),
    })
    // Left in the inbox by a process that does not know the tool, it is refused by the one that drives.
    const command = {
      type: 'approve',
      toolCallId: asked!.toolCallId,
      by: 'ann',
      input: { usd: 9_999 },
    } as const
    await at.ledger.put(run.id, { key: 'k1', command, at: at.clock.now() })
    const later = at.runtime.resume(run.id)
    expect(await later.result).toMatchObject({ status: 'suspended' })
    expect(at.tool.runs).toHaveLength(0)
    expect(await give('ann', 500, ['finance'])).toEqual({ accepted: true })
    expect(await run.result).toMatchObject({ status: 'done' })
    expect(at.tool.runs.map(({ input }) => input)).toEqual([{ usd: 500 }])
    await judge(at, run.id)
  })

  it('is held to them in the approval with which a fork begins, too', async () => {
    const at = desk([pay(5), { text: 'Paid.' }, { text: 'Paid.' }], byAmount)
    const run = at.start()
    const [asked] = (await run.result).pendingApprovals
    const { seq } = await run.result
    const fork = (usd: number) =>
      at.runtime.fork(run.id, {
        atSeq: seq,
        writes: 'run',
        edit: { approvals: [{ toolCallId: asked!.toolCallId, by: 'ann', approved: true, input: { usd } }] },
      })
    await expect(fork(500).result).rejects.toThrow('needs an approver with one of these roles: finance')
    expect(at.tool.runs).toHaveLength(0)
    expect(await fork(7).result).toMatchObject({ status: 'done' })
    expect(at.tool.runs.map(({ input }) => input)).toEqual([{ usd: 7 }])
  })

  it('runs with one that demands nobody else, whoever started it', async () => {
    const at = desk([pay(5), { text: 'Paid.' }], byAmount)
    const run = at.start({ owner: 'olga' })
    const [asked] = (await run.result).pendingApprovals
    expect(await run.approve(asked!, { by: 'olga', input: { usd: 100 } })).toEqual({ accepted: true })
    expect(await run.result).toMatchObject({ status: 'done' })
  })
})

describe('a call that two people of finance have to approve', () => {
  it('runs after the second of them, and not for one person twice, the owner, or another role', async () => {
    const at = desk([pay(5), { text: 'Paid.' }], twoOfFinance, { ledger: sqlite() })
    const run = at.start({ owner: 'olga' })
    const [asked] = (await run.result).pendingApprovals
    expect(asked).toMatchObject({ approvers: [{ count: 2, roles: ['finance'] }] })
    expect(await run.approve(asked!, { by: 'olga', ...finance })).toMatchObject({
      accepted: false,
      code: 'not_an_approver',
      message: expect.stringContaining('started this run'),
    })
    expect(await run.approve(asked!, { by: 'carl', roles: ['sales'] })).toMatchObject({
      code: 'not_an_approver',
      message: expect.stringContaining('one of these roles: finance'),
    })
    expect(await run.approve(asked!, { by: 'carl' })).toMatchObject({ code: 'not_an_approver' })
    expect(await run.approve(asked!, { by: 'ann', ...finance })).toEqual({ accepted: true })
    expect(await run.approve(asked!, { by: 'ann', ...finance })).toMatchObject({ code: 'approved_before' })
    const waiting = await run.result
    expect(waiting).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ approvals: [{ by: 'ann', roles: ['finance'] }] }],
    })
    expect(at.tool.runs).toHaveLength(0)
    // Another process has to count the first one, too.
    const later = at.runtime.resume(run.id)
    expect(await later.approve(asked!, { by: 'ben', ...finance })).toEqual({ accepted: true })
    expect(await later.result).toMatchObject({ status: 'done', text: 'Paid.' })
    const events = await judge(at, run.id)
    expect(types(events)).toEqual([
      'approval_requested',
      'approval_added',
      'approval_decided',
      'tool_started',
    ])
    expect(events.filter(({ type }) => type.startsWith('approval_'))).toMatchObject([
      { approvers: [{ count: 2, roles: ['finance'] }] },
      { by: 'ann', roles: ['finance'] },
      { by: 'ben', roles: ['finance'], approved: true },
    ])
    await requireVerified(at.ledger)
  })

  it('counts a person once, in whatever case, spaces or hidden characters the name is written', async () => {
    const at = desk([pay(5), { text: 'Paid.' }], twoOfFinance)
    const run = at.start({ owner: 'olga' })
    const [asked] = (await run.result).pendingApprovals
    for (const by of ['Olga', ' olga', 'ol\u200Bga', 'ｏlga'])
      expect(await run.approve(asked!, { by, ...finance })).toMatchObject({
        code: 'not_an_approver',
        message: expect.stringContaining(`${by} (on record as olga) started this run`),
      })
    expect(await run.approve(asked!, { by: 'Ann', ...finance })).toEqual({ accepted: true })
    for (const by of ['ann', 'Ann ', 'A\u00ADnn', 'ann\u2800', '\uE000ann'])
      expect(await run.approve(asked!, { by, ...finance })).toMatchObject({ code: 'approved_before' })
    expect(at.tool.runs).toHaveLength(0)
    expect(await run.approve(asked!, { by: 'ben', ...finance })).toEqual({ accepted: true })
    await run.result
    await judge(at, run.id)
  })

  it.each([
    ['Straße', 'STRASSE'],
    ['ΝΊΚΟΣ', 'νίκος'],
    ['νίκοσ', 'ΝΊΚΟΣ'],
  ])('counts %s and %s as one', async (one, same) => {
    const at = desk([pay(5), { text: 'Paid.' }], twoOfFinance)
    const run = at.start()
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: one, ...finance })
    expect(await run.approve(asked!, { by: same, ...finance })).toMatchObject({ code: 'approved_before' })
  })

  it('is denied by one person, whatever their roles, also after an approval', async () => {
    const at = desk([pay(5), { text: 'No.' }], twoOfFinance)
    const run = at.start({ owner: 'olga' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', ...finance })
    expect(await run.deny(asked!, { by: 'olga', reason: 'I was wrong.' })).toEqual({ accepted: true })
    expect(await run.result).toMatchObject({ status: 'done' })
    expect(at.tool.runs).toHaveLength(0)
    expect(types(await judge(at, run.id))).toEqual([
      'approval_requested',
      'approval_added',
      'approval_decided',
    ])
  })

  it('runs with what was shown to both: an approval changes no input, and covers no later call', async () => {
    const at = desk([pay(5), { text: 'Paid.' }], twoOfFinance)
    const run = at.start()
    const [asked] = (await run.result).pendingApprovals
    const changed = { by: 'ann', ...finance, input: { usd: 500 } }
    expect(await run.approve(asked!, changed)).toMatchObject({ code: 'not_supported' })
    await run.approve(asked!, { by: 'ann', ...finance })
    expect(await run.approve(asked!, { ...changed, by: 'ben' })).toMatchObject({ code: 'not_supported' })
    const standing = { for: 'session', expiresInMs: hour } as const
    expect(await run.approve(asked!, { by: 'ben', ...finance, standing })).toMatchObject({
      code: 'not_supported',
    })
    await run.approve(asked!, { by: 'ben', ...finance, input: { usd: 5 } })
    await run.result
    expect(at.tool.runs.map(({ input }) => input)).toEqual([{ usd: 5 }])
  })

  it('asks both anew in a fork', async () => {
    const at = desk([pay(5), pay(5), { text: 'Paid.' }], twoOfFinance)
    const run = at.start({ owner: 'olga' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', ...finance })
    await run.result
    const fork = at.runtime.fork(run.id, { atSeq: (await read(at.ledger, run.id)).length })
    const [again] = (await fork.result).pendingApprovals
    expect(again).not.toHaveProperty('approvals')
    await fork.approve(again!, { by: 'ben', ...finance })
    expect(await fork.result).toMatchObject({ status: 'suspended' })
    await fork.approve(again!, { by: 'ann', ...finance })
    await fork.result
    expect(at.tool.runs).toHaveLength(1)
    expect(checkLaws(await read(at.ledger, fork.id))).toEqual([])
  })

  it('satisfies all of several policies', async () => {
    const legal: ApprovalPolicy = () => ({ ask: 'A contract.', approvers: { roles: ['legal'] } })
    const at = desk([pay(5), { text: 'Paid.' }], twoOfFinance)
    const runtime = createRuntime({ ledger: at.ledger, agents: [at.agent], approval: legal })
    const run = runtime.run(at.agent, 'Go.')
    const [asked] = (await run.result).pendingApprovals
    expect(asked!.approvers).toEqual([{ roles: ['legal'] }, { count: 2, roles: ['finance'] }])
    await run.approve(asked!, { by: 'ann', ...finance })
    await run.approve(asked!, { by: 'ben', roles: ['legal'] })
    expect(await run.result).toMatchObject({ status: 'suspended' })
    await run.approve(asked!, { by: 'cem', roles: ['finance', 'legal'] })
    expect(await run.result).toMatchObject({ status: 'done' })
  })

  it('is denied if the policy demands what is no demand', async () => {
    const wrong = (() => ({ ask: 'Why?', approvers: { count: 0 } })) as ApprovalPolicy
    const at = desk([pay(5), { text: 'No.' }], wrong)
    expect(await at.start().result).toMatchObject({ status: 'done' })
    expect(at.tool.runs).toHaveLength(0)
  })

  it('is approved by signed tokens with the roles in them', async () => {
    const at = desk([pay(5), { text: 'Paid.' }], twoOfFinance)
    const tokens = approvalTokens({ secret: 's'.repeat(32), audience: 'here', clock: at.clock })
    const run = at.start()
    const [asked] = (await run.result).pendingApprovals
    const send = async (to: string, roles: readonly string[]) =>
      await tokens.decide(at.runtime, tokens.issue(asked!, { to, roles }), { approved: true })
    expect(tokens.read(tokens.issue(asked!, { to: 'ann', roles: ['a.b~', 'c%'] }))).toMatchObject({
      roles: ['a.b~', 'c%'],
    })
    expect(await send('ann', ['sales'])).toMatchObject({ code: 'not_an_approver' })
    expect(await send('ann', ['finance'])).toEqual({ accepted: true })
    expect(await send('ann', ['finance'])).toMatchObject({ code: 'approved_before' })
    expect(await send('ben', ['finance'])).toEqual({ accepted: true })
    expect(await at.runtime.resume(run.id).result).toMatchObject({ status: 'done' })
  })
})

describe('a standing approval', () => {
  it('is held by the judge of laws to what its record says', async () => {
    const at = desk([pay(20), pay(20), { text: 'Paid.' }], asks)
    const run = at.start()
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: { for: 'equal_input', expiresInMs: hour } })
    await run.result
    const events = await judge(at, run.id)
    const place = events.findIndex(({ type }) => type === 'approval_applied')
    const about = (change: (event: RuntimeEvent) => object): readonly string[] => {
      const changed: readonly RuntimeEvent[] = events.map((event) => ({ ...event, ...change(event) }))
      return checkLaws(changed).map(({ what }) => what)
    }
    const withdrawn = { type: 'approval_withdrawn', standing: asked!.toolCallId, by: 'ben', turn: 1 }
    const before = events[place - 1]
    expect(about((event) => (event === before ? withdrawn : {})).join()).toContain('was withdrawn')
    const late = { at: events[place]!.at + hour }
    expect(about(({ seq }) => (seq > place ? late : {})).join()).toContain('has expired')
    const other = { inputDigest: 'other' }
    expect(about(({ type }) => (type === 'approval_decided' ? other : {})).join()).toContain('another input')
    expect(about(({ type }) => (type === 'approval_applied' ? { by: 'ben' } : {})).join()).toContain(
      'ann gave it',
    )
    expect(
      about((event) => (event.type === 'approval_decided' ? { standing: undefined } : {})).join(),
    ).toContain('is no standing approval of this run')
  })

  const forSession = { for: 'session', expiresInMs: hour } as const

  it('lets later calls of its session run, with an event that names it', async () => {
    const at = desk([pay(5), pay(6), { text: 'Paid.' }, pay(7), { text: 'Again.' }], asks, {
      ledger: sqlite(),
    })
    const run = at.start({ sessionId: 's' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: forSession })
    expect(await run.result).toMatchObject({ status: 'done' })
    const next = at.start({ sessionId: 's' })
    expect(await next.result).toMatchObject({ status: 'done' })
    expect(at.tool.runs).toHaveLength(3)
    const applied = { type: 'approval_applied', by: 'ann', standing: asked!.toolCallId }
    const [first, second] = [await judge(at, run.id), await judge(at, next.id)]
    expect(types(first)).toEqual([
      ...['approval_requested', 'approval_decided', 'tool_started', 'approval_applied', 'tool_started'],
    ])
    expect(first.find(({ type }) => type === 'approval_applied')).toMatchObject(applied)
    expect(second.find(({ type }) => type === 'approval_applied')).toMatchObject(applied)
    expect(second[0]).toMatchObject({ standing: [{ toolCallId: asked!.toolCallId, name: 'pay', by: 'ann' }] })
    await requireVerified(at.ledger)
  })

  it('for equal input covers no other input', async () => {
    const at = desk([pay(5), pay(5), pay(6), { text: 'Paid.' }], asks)
    const run = at.start()
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: { for: 'equal_input', expiresInMs: hour } })
    const waiting = await run.result
    expect(waiting.pendingApprovals).toMatchObject([{ input: { usd: 6 } }])
    expect(at.tool.runs).toHaveLength(2)
  })

  it('ends at its time', async () => {
    const at = desk([pay(5), { text: 'Paid.' }, pay(5), { text: 'Paid.' }], asks)
    const run = at.start({ sessionId: 's' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: forSession })
    await run.result
    at.clock.advance(hour)
    const next = at.start({ sessionId: 's' })
    expect((await next.result).pendingApprovals).toHaveLength(1)
    expect(await next.withdraw(asked!.toolCallId, { by: 'ben' })).toMatchObject({
      code: 'no_standing_approval',
    })
    expect((await judge(at, next.id))[0]).not.toHaveProperty('standing')
  })

  it('ends when it is withdrawn, by anybody, also in a later run of its session', async () => {
    const hold: ScriptedReply = { toolCalls: [{ name: 'hold', input: {} }] }
    const at = desk([pay(5), { text: 'Paid.' }, pay(6), hold, pay(7), { text: 'Paid.' }], asks)
    const run = at.start({ sessionId: 's' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: forSession })
    await run.result
    const next = at.start({ sessionId: 's' })
    const [held] = (await next.result).pendingApprovals
    expect(held).toMatchObject({ name: 'hold' })
    expect(await next.withdraw('call_1', { by: 'ben' })).toMatchObject({ code: 'no_standing_approval' })
    expect(await next.withdraw(asked!.toolCallId, { by: 'ben', reason: 'Enough.' })).toEqual({
      accepted: true,
    })
    await next.approve(held!, { by: 'ann' })
    const [again] = (await next.result).pendingApprovals
    expect(again).toMatchObject({ name: 'pay', input: { usd: 7 } })
    await next.approve(again!, { by: 'ann' })
    expect(await next.result).toMatchObject({ status: 'done' })
    expect(types(await judge(at, next.id))).toContain('approval_withdrawn')
  })

  it('ends between two runs, by an edit of its session', async () => {
    const replies = [pay(5), { text: 'Paid.' }, pay(6), { text: 'Paid.' }, pay(7), { text: 'Paid.' }]
    const at = desk(replies, asks, { ledger: sqlite() })
    const run = at.start({ sessionId: 's' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: forSession })
    await run.result
    const session = at.runtime.session('s')
    await session.append({ role: 'user', content: 'Be careful.' }, { by: 'ben' })
    const next = at.start({ sessionId: 's' })
    expect(await next.result).toMatchObject({ status: 'done' })
    expect(await session.withdraw('call_1', { by: 'ben' })).toBe(false)
    expect(await session.withdraw(asked!.toolCallId, { by: 'ben', reason: 'Enough.' })).toBe(true)
    expect(await session.withdraw(asked!.toolCallId, { by: 'ben' })).toBe(false)
    const last = at.start({ sessionId: 's' })
    expect((await last.result).pendingApprovals).toMatchObject([{ input: { usd: 7 } }])
    await expect(session.withdraw(asked!.toolCallId, { by: 'ben' })).rejects.toMatchObject({
      kind: 'session',
    })
    await judge(at, last.id)
    const edits = await Array.fromAsync(at.ledger.find({ types: ['session_edited'] }))
    expect(edits.at(-1)).toMatchObject({
      edit: 'withdraw',
      standing: asked!.toolCallId,
      by: 'ben',
      reason: 'Enough.',
    })
    await requireVerified(at.ledger)
  })

  it('covers no changed tool, other agent, fork, branch, or call of other approvers', async () => {
    const ledger = memoryLedger()
    const at = desk([pay(5), { text: 'Paid.' }], asks, { ledger })
    const run = at.start({ sessionId: 's' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', ...finance, standing: forSession })
    await run.result
    const waits = async (other: Desk, options: RunOptions) =>
      (await other.start(options).result).pendingApprovals.length
    const again = [pay(5), { text: 'Paid.' }]
    const changed = desk(again, asks, { ledger, description: 'Pays, and posts the books.' })
    expect(await waits(changed, { sessionId: 's' })).toBe(1)
    expect(await waits(desk(again, asks, { ledger }), { sessionId: 't', from: { runId: run.id } })).toBe(1)
    const strict = desk(again, twoOfFinance, { ledger })
    expect(await waits(strict, { sessionId: 'u', from: { runId: run.id } })).toBe(1)
  })

  it('covers no call about another subject, whom a run of the session names or takes from elsewhere', async () => {
    const bills = [pay(5), { text: 'Paid.' }]
    const at = desk([...bills, ...bills, pay(5)], asks, { ledger: sqlite() })
    const approve = async (run: Run) => {
      const [asked] = (await run.result).pendingApprovals
      await run.approve(asked!, { by: 'ann', standing: forSession })
      await run.result
    }
    await approve(at.start({ sessionId: 's', subject: 'ada' }))
    expect(await at.start({ sessionId: 's' }).result).toMatchObject({ status: 'done' })
    expect(await at.start({ sessionId: 's', subject: 'bob' }).result).toMatchObject({ status: 'suspended' })

    const other = desk([...bills, ...bills, pay(5)], asks)
    await approve(other.start({ sessionId: 't', subject: 'ada' }))
    const bobs = other.start({ sessionId: 'u', subject: 'bob' })
    await approve(bobs)
    const moved = other.start({ sessionId: 't', from: { runId: bobs.id } })
    expect(await moved.result).toMatchObject({ status: 'suspended' })
  })

  it('given for reading covers no writing by a tool of the same words', async () => {
    const ledger = memoryLedger()
    const replies = [pay(5), { text: 'Done.' }, pay(5), { text: 'Done.' }]
    const reads = desk(replies, () => 'ask', { ledger, effect: 'read' })
    const run = reads.start({ sessionId: 's' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: forSession })
    await run.result
    expect(await reads.start({ sessionId: 's' }).result).toMatchObject({ status: 'done' })
    const writes = desk(replies, () => 'ask', { ledger })
    expect((await writes.start({ sessionId: 's' }).result).pendingApprovals).toHaveLength(1)
  })

  it('covers nothing more once its content was removed', async () => {
    const ledger = sqlite()
    const at = desk([pay(5), { text: 'Paid.' }, pay(6), { text: 'Paid.' }], asks, { ledger })
    const run = at.start({ sessionId: 's' })
    const [asked] = (await run.result).pendingApprovals
    await run.approve(asked!, { by: 'ann', standing: { for: 'equal_input', expiresInMs: hour } })
    await run.result
    await redact(ledger, run.id, 'all', { by: 'dpo', reason: 'asked' })
    const next = at.start({ sessionId: 's' })
    expect((await next.result).pendingApprovals).toHaveLength(1)
    await requireVerified(ledger)
  })
})

describe('a policy that lets a call run, and says why', () => {
  it('is on record with its reason, and is not asked by a replay without the context', async () => {
    let asked = 0
    const engine: ApprovalPolicy = ({ name }) => (asked++, { run: `policy 3 allows ${name}` })
    const at = desk([pay(5), { text: 'Paid.' }], engine)
    const runtime = createRuntime({
      ledger: at.ledger,
      agents: [at.agent],
      approval: () => ({ run: 'office hours' }),
    })
    const run = runtime.run(at.agent, 'Go.', { context: { url: 'http://engine' } })
    expect(await run.result).toMatchObject({ status: 'done' })
    const collected = (await read(at.ledger, run.id)).find(({ type }) => type === 'tool_requests_collected')
    expect(collected).toMatchObject({ calls: [{ plan: 'run', reason: 'office hours; policy 3 allows pay' }] })
    const events = await judge(at, run.id)
    expect(events.length).toBeGreaterThan(5)
    expect(asked).toBe(1)
  })
})
