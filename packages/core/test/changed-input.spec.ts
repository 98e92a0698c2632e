import {
  type AgentOptions,
  createRuntime,
  type GuardedCall,
  type PolicyCall,
  type PolicyVerdict,
  type RunResult,
  joinText,
} from '@tallystick/core'
import { describeChangedInput, findInputFault } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { hostileTexts, testTool, type TestTool, type TestToolOptions } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { checkedRun, ofType, stage, type Stage } from './stage.ts'

const schema = {
  type: 'object',
  properties: { amount: { type: 'number' }, to: { type: 'string' } },
  required: ['amount'],
  additionalProperties: false,
} as const

/** A tool that pays what it is asked to, once a person has allowed it. */
function paying(options: Partial<TestToolOptions> = {}): TestTool {
  return {
    ...testTool({
      name: 'pay',
      effect: 'write',
      check: ({ amount }) =>
        typeof amount === 'number'
          ? { kind: 'ask' }
          : { kind: 'refuse', outcome: 'invalid_input', text: 'amount: expected a number' },
      run: () => 'paid',
      ...options,
    }),
    inputSchema: schema,
  }
}

async function waiting(
  tool: TestTool,
  input: JsonObject = { amount: 1000, to: 'ACME', memo: 'tea' },
): Promise<{ set: Stage; rest: RunResult; toolCallId: string }> {
  const set = stage({
    steps: [{ toolCalls: [{ name: 'pay', input }] }, { text: 'I see.' }],
    tools: [tool],
  })
  const rest = await set.play()
  return { set, rest, toolCallId: rest.pendingApprovals[0]?.toolCallId ?? '' }
}

describe('a call that ran with a changed input', () => {
  it('is answered to the model with what was changed, and the record says it', async () => {
    const pay = paying()
    const { set, rest, toolCallId } = await waiting(pay)
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(
      run.approve(toolCallId, { by: 'ada', via: 'prompt', input: { amount: 1, to: 'ACME' } }),
    )
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'done' })
    const note =
      'This call did not run with the input that you asked for: ada changed it before it ran. ' +
      'What differed: "amount" was 1, "memo" was left out. The result is that of the changed call.'
    expect(set.model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [
        {
          outcome: 'success',
          content: [
            { type: 'text', text: note },
            { type: 'text', text: 'paid' },
          ],
        },
      ],
    })
    const events = checkedRun(await set.eventsOf(rest.runId))
    expect(ofType(events, 'approval_decided')).toMatchObject([
      { by: 'ada', via: 'prompt', input: { amount: 1, to: 'ACME' }, note },
    ])
    // The record holds what the tool said, word for word.
    expect(ofType(events, 'tool_result').map(({ content }) => joinText(content))).toEqual(['paid'])
  })

  it('is named to the model where the tool failed, and not where nothing ran', async () => {
    const failing = paying({
      run: () => {
        throw new Error('no money')
      },
    })
    const failed = await waiting(failing)
    const run = failed.set.runtime.resume(failed.rest.runId)
    await failed.set.waitUntilSettled(run.approve(failed.toolCallId, { by: 'ada', input: { amount: 2 } }))
    await failed.set.waitUntilSettled(run.result)
    const [reported] = resultsOf(failed.set)
    expect(reported?.content.map((part) => joinText([part]))).toEqual([
      expect.stringContaining('"amount" was 2'),
      expect.stringContaining('no money'),
    ])
  })

  it('is refused with a number that may have been rounded, unless the model wrote that number', async () => {
    const { set, rest, toolCallId } = await waiting(paying())
    const run = set.runtime.resume(rest.runId)
    const amount = Number('2512292042121000001')
    const answer = set.waitUntilSettled(run.approve(toolCallId, { by: 'ada', input: { amount } }))
    const message: unknown = expect.stringContaining('may have been rounded')
    expect(await answer).toMatchObject({ accepted: false, code: 'invalid_input', message })
    const meant = await waiting(paying(), { amount, to: 'ACME' })
    const other = meant.set.runtime.resume(meant.rest.runId)
    const given = { by: 'ada', input: { amount, to: 'Globex' } }
    expect(await meant.set.waitUntilSettled(other.approve(meant.toolCallId, given))).toEqual({
      accepted: true,
    })
  })

  it('is not a changed call where the input that is given is the one that was asked for', async () => {
    const { set, rest, toolCallId } = await waiting(paying())
    const run = set.runtime.resume(rest.runId)
    const same = { memo: 'tea', to: 'ACME', amount: 1000 }
    await set.waitUntilSettled(run.approve(toolCallId, { by: 'ada', input: same }))
    await set.waitUntilSettled(run.result)
    expect(resultsOf(set)).toMatchObject([{ content: [{ type: 'text', text: 'paid' }] }])
    const [decided] = ofType(await set.eventsOf(rest.runId), 'approval_decided')
    expect(decided).not.toHaveProperty('input')
    expect(decided).not.toHaveProperty('note')
  })

  it('names a changed key in words that no key can leave', () => {
    for (const { text } of hostileTexts) {
      const said = describeChangedInput('ada', {}, { [text]: text })
      expect(said.split('\n')).toHaveLength(1)
    }
  })
})

describe('a changed input that does not fit', () => {
  it('is refused where the check of its tool takes longer than ten seconds', async () => {
    const slow = paying({ check: ({ amount }) => (amount === 2 ? new Promise(() => {}) : { kind: 'ask' }) })
    const { set, rest, toolCallId } = await waiting(slow)
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(run.result)
    let answer: unknown = 'waits'
    void run.approve(toolCallId, { by: 'ada', input: { amount: 2 } }).then((found) => (answer = found))
    const pass = async (ms: number): Promise<void> => {
      for (let turn = 0; turn < 100; turn++) await Promise.resolve()
      set.clock.advance(ms)
      for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    }
    await pass(9_999)
    expect(answer).toBe('waits')
    await pass(1)
    expect(answer).toMatchObject({ accepted: false, code: 'invalid_input' })
    expect((answer as { message: string }).message).toContain('Its check did not end in 10000 ms.')
    expect(set.clock.pending).toBe(0)
  })

  it('is refused to the approver, and the call still waits; the model reads nothing of it', async () => {
    const pay = paying()
    const { set, rest, toolCallId } = await waiting(pay)
    const run = set.runtime.resume(rest.runId)
    const acknowledgement = await set.waitUntilSettled(
      run.approve(toolCallId, { by: 'ada', input: { amount: 'all' } }),
    )
    expect(acknowledgement).toMatchObject({
      accepted: false,
      code: 'invalid_input',
      message: expect.stringContaining('amount: expected a number'),
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ toolCallId }],
    })
    expect(pay.runs).toEqual([])
    expect(ofType(await set.eventsOf(rest.runId), 'approval_decided')).toEqual([])
    await set.waitUntilSettled(run.approve(toolCallId, { by: 'ada', input: { amount: 3 } }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'done' })
    expect(pay.runs.map(({ input }) => input)).toEqual([{ amount: 3 }])
  })

  it('is not looked at where the call was decided before: the answer says by whom', async () => {
    const { set, rest, toolCallId } = await waiting(paying({ run: () => new Promise(() => {}) }))
    const run = set.runtime.resume(rest.runId)
    await set.waitUntilSettled(run.approve(toolCallId, { by: 'ada' }))
    const late = run.approve(toolCallId, { by: 'bo', input: { amount: 'all' } })
    expect(await set.waitUntilSettled(late)).toMatchObject({
      ...{ accepted: false, code: 'not_awaiting_approval' },
      message: expect.stringContaining('was approved before, by ada') as string,
    })
  })

  it('is refused by the process that drives the run, where another one has left it in the inbox', async () => {
    const pay = paying()
    const { set, rest, toolCallId } = await waiting(pay)
    const wrong = { type: 'approve' as const, toolCallId, by: 'ada', input: { amount: 'all' } }
    await set.ledger.put(rest.runId, { key: 'k1', command: wrong, at: set.clock.now() })
    const run = set.runtime.resume(rest.runId)
    expect(await set.waitUntilSettled(run.result)).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ toolCallId }],
    })
    expect(await set.ledger.inbox(rest.runId)).toEqual([])
    expect(pay.runs).toEqual([])
    checkedRun(await set.eventsOf(rest.runId))
  })

  it('is refused where the check of the tool never ends', async () => {
    let isHanging = false
    const pay = paying({ check: () => (isHanging ? new Promise(() => {}) : { kind: 'ask' }) })
    const { set, rest, toolCallId } = await waiting(pay)
    isHanging = true
    const run = set.runtime.resume(rest.runId)
    const acknowledgement = await set.waitUntilSettled(
      run.approve(toolCallId, { by: 'ada', input: { amount: 1 } }),
    )
    expect(acknowledgement).toMatchObject({ accepted: false, code: 'invalid_input' })
  })

  it('is refused by the schema on record too, where this process does not have the tool', async () => {
    expect(await findInputFault(schema, { amount: 1, to: 'ACME' })).toBeUndefined()
    expect(await findInputFault(schema, { amount: 'all' })).toMatch(/^amount: /)
    expect(await findInputFault(schema, { amount: 1, sum: 2 })).toContain('sum')
    expect(await findInputFault({ $ref: 'https://example.com/schema' }, {})).toBeUndefined()
  })

  it('is refused by the schema of the agent itself where its source had a tool of that name before', async () => {
    const payOf = (type: string) => ({
      ...testTool({ name: 'pay', check: () => ({ kind: 'ask' }) }),
      inputSchema: { type: 'object', properties: { amount: { type } } },
    })
    const { ledger, clock, ...first } = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: { amount: 1 } }] }],
      toolSource: { tools: [payOf('number')] },
    })
    const { runId, pendingApprovals } = await first.play()
    const later = stage({ ledger, clock, tools: [payOf('string')] })
    await later.waitUntilSettled(later.runtime.resume(runId).result)
    // This process has no agent: it goes by the record.
    const other = createRuntime({ ledger, host: { clock } })
    const { toolCallId } = pendingApprovals[0]!
    const approval = { type: 'approve', toolCallId, by: 'ada', input: { amount: 2 } } as const
    expect(await later.waitUntilSettled(other.send(runId, approval))).toMatchObject({
      ...{ accepted: false, code: 'invalid_input' },
      message: expect.stringContaining('amount: type "number" is invalid') as string,
    })
  })

  it('is judged without patterns of strangers, and a property may be called as one', async () => {
    const slow = { type: 'object', properties: { memo: { type: 'string', pattern: '^(a+)+$' } } }
    expect(await findInputFault(slow, { memo: `${'a'.repeat(50)}!` })).toBeUndefined()
    const named = { type: 'object', properties: { pattern: { type: 'number' } }, required: ['pattern'] }
    expect(await findInputFault(named, { pattern: 'x' })).toMatch(/^pattern: /)
  })
})

function resultsOf({ model }: Stage): readonly { readonly content: readonly { readonly type: string }[] }[] {
  const message = model.requests[1]?.messages.at(-1)
  return message?.role === 'tool' ? message.results : []
}

describe('a changed input that the tool would take', () => {
  const changed = async (options: Partial<AgentOptions>): Promise<unknown> => {
    const tool = paying()
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: { amount: 1 } }] }, { text: 'I see.' }],
      tools: [tool],
      ...options,
    })
    const { runId, pendingApprovals } = await set.play()
    const run = set.runtime.resume(runId)
    const given = { by: 'ada', input: { amount: 9_000 } }
    const acknowledgement = await set.waitUntilSettled(run.approve(pendingApprovals[0]!.toolCallId, given))
    expect(tool.runs).toEqual([])
    return acknowledgement
  }

  it('is refused to the approver where the agent denies it', async () => {
    const approval = ({ input }: PolicyCall): PolicyVerdict =>
      Number(input['amount']) > 100 ? { deny: 'More than 100 is never paid.' } : 'run'
    expect(await changed({ approval })).toMatchObject({
      ...{ accepted: false, code: 'invalid_input' },
      message: expect.stringContaining('More than 100 is never paid.') as string,
    })
  })

  it('is refused to the approver where a guardrail blocks it, or would put another in its place', async () => {
    const blocks = { name: 'caps', on: 'tool_input', check: cap({ block: 'too much' }) } as const
    expect(await changed({ guardrails: [blocks] })).toMatchObject({ accepted: false, code: 'invalid_input' })
    const replaces = { name: 'caps', on: 'tool_input', check: cap({ replace: { amount: 100 } }) } as const
    expect(await changed({ guardrails: [replaces] })).toMatchObject({
      accepted: false,
      message: expect.stringContaining('{"amount":100}') as string,
    })
  })
})

function cap<Verdict>(verdict: Verdict) {
  return ({ input }: GuardedCall): Verdict | 'pass' => (Number(input['amount']) > 100 ? verdict : 'pass')
}
