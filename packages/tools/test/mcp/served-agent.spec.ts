import { getEventListeners } from 'node:events'
import {
  agentTool,
  type AgentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type RuntimeEvent,
} from '@tallystick/core'
import { isAgentTool } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { callAgent } from '../../src/mcp/serve-mcp.ts'
import { z } from 'zod'
import { tick } from './connected.ts'
import { ownTools } from './servers/own-tools.ts'

type Steps = Parameters<typeof scriptedModel>[0]

interface CallOptions {
  readonly isLate?: boolean
  readonly context?: object
  /** Of the agent: the schema of its answers. */
  readonly output?: z.ZodType
  /** Of its tool: what is read of an answer. */
  readonly answer?: AgentTool['toAnswer']
}

/** An agent of these steps that is called once, as a client calls it, and what is heard of it. */
function withCall(
  steps: Steps,
  input: JsonObject,
  { isLate = false, context = {}, output, answer }: CallOptions = {},
) {
  const { add, slow, pay, stopped } = ownTools()
  const seen: unknown[] = []
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: { type: 'object' },
    effect: 'read',
    execute: (_input, given) => {
      seen.push(given.context)
      return 'seen'
    },
  })
  const agent = defineAgent<unknown>({
    name: 'helper',
    description: 'Helps.',
    instructions: '',
    model: scriptedModel(steps),
    tools: [add, slow, pay, look],
    limits: { maxTurns: 3, onLimit: 'stop' },
    ...(output && { output }),
  })
  const ledger = memoryLedger()
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
  const tool = agentTool(agent, answer && { output: answer })
  if (!isAgentTool(tool)) throw new Error('no tool of an agent')
  const abort = new AbortController()
  if (isLate) abort.abort()
  const reports: Json[] = []
  const ending = callAgent(tool, runtime, {
    ...{ input, context, signal: abort.signal, timers: manualClock() },
    progress: (data) => void reports.push(data),
  })
  return { ending, abort, reports, stopped, seen, ledger, runtime }
}

const task = { task: 'Help.' }
const parts = (text: string | RegExp): unknown => [
  { type: 'text', text: expect.stringMatching(text) as string },
]

describe('an agent that a client calls', () => {
  it('given a task, when it has answered, then its answer is the result, and each reply with calls was reported', async () => {
    const { ending, abort, reports, seen } = withCall(
      [
        {
          toolCalls: [
            { name: 'look', input: {} },
            { name: 'add', input: { a: 1, b: 2 } },
          ],
        },
        { toolCalls: [{ name: 'add', input: { a: 3, b: 4 } }] },
        { text: 'Seven.' },
      ],
      task,
      { context: { user: 'ada' } },
    )
    expect(await ending).toMatchObject({ outcome: 'success', content: parts(/^Seven\.$/) })
    expect(reports).toEqual([{ message: 'calls look, add' }, { message: 'calls add' }])
    // Nothing of the call is left at the client's signal.
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])
    expect(seen).toEqual([{ user: 'ada' }])
  })

  it('given a schema of its answers, when it has answered, then the value is the result, as JSON, or what its tool reads of it', async () => {
    const output = z.object({ sum: z.number() }).transform(({ sum }) => ({ sum, isOdd: sum % 2 === 1 }))
    const steps = [{ text: '{"sum":7}' }]
    const plain = withCall(steps, task, { output })
    expect(await plain.ending).toMatchObject({
      outcome: 'success',
      content: parts(/^\{"sum":7,"isOdd":true\}$/),
    })
    const none = withCall(steps, task, { output: output.transform(() => undefined) })
    expect(await none.ending).toMatchObject({ outcome: 'success', content: parts(/^\{"sum":7\}$/) })
    const read = withCall(steps, task, {
      output,
      answer: ({ text, output: value, turns, toolCalls }) =>
        JSON.stringify({ text, value, turns, toolCalls }),
    })
    const [first] = (await read.ending).content
    expect(JSON.parse((first as { text: string }).text)).toEqual({
      ...{ text: '{"sum":7}', value: { sum: 7, isOdd: true }, turns: 1, toolCalls: 0 },
    })
  })

  it('given a tool that reads answers, when the run has no answer, or the tool fails, then the client learns why', async () => {
    const image = { type: 'image', mediaType: 'image/png', data: 'aGVs' } as const
    const more = { text: 'More. ', toolCalls: [{ name: 'look', input: {} }] }
    const answer = (): readonly [typeof image] => [image]
    expect(await withCall([{ text: 'Seen.' }], task, { answer }).ending).toEqual({
      ...{ outcome: 'success', content: [image] },
    })
    const { ending } = withCall([more, more, more, more], task, { answer })
    expect(await ending).toMatchObject({ outcome: 'failed', content: parts(/turn_limit/) })
    const failing = withCall([{ text: 'Seen.' }], task, {
      answer: () => {
        throw new Error('no picture')
      },
    })
    expect(await failing.ending).toMatchObject({ outcome: 'failed', content: parts(/no picture/) })
  })

  it('given no task, when it is called, then nothing runs', async () => {
    const { ending, ledger } = withCall([], { task: ' ' })
    expect(await ending).toMatchObject({ outcome: 'invalid_input', content: parts('Nothing was run') })
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
  })

  it('given a tool that runs, when the client cancels the call, then the tool is stopped and the run ends', async () => {
    const { ending, abort, reports, stopped, ledger } = withCall(
      [{ toolCalls: [{ name: 'slow', input: {} }] }, { text: 'Done.' }],
      task,
    )
    const recorded = async (): Promise<readonly RuntimeEvent[]> => {
      const [run] = await Array.fromAsync(ledger.runs())
      return run ? await Array.fromAsync(ledger.read(run.runId)) : []
    }
    while (!(await recorded()).some(({ type }) => type === 'tool_progress')) await tick()
    expect(reports).toEqual([{ message: 'calls slow' }])
    abort.abort()
    const text = /^The agent ended without an answer \(cancelled\)\. \nIts run is [0-9a-f-]{36}\.$/
    expect(await ending).toMatchObject({ outcome: 'failed', content: parts(text) })
    expect(stopped).toEqual(['the client cancelled the call'])
    expect((await recorded()).at(-1)).toMatchObject({ type: 'run_finished', reason: 'cancelled' })
  })

  it('given a client that has cancelled already, when the run begins, then it is cancelled', async () => {
    const { ending, stopped } = withCall([{ toolCalls: [{ name: 'slow', input: {} }] }], task, {
      isLate: true,
    })
    expect(await ending).toMatchObject({ outcome: 'failed', content: parts('(cancelled)') })
    expect(stopped).toEqual([])
  })

  it('given a limit, when the run meets it, then the client learns why, and what was said', async () => {
    const more = { text: 'More. ', toolCalls: [{ name: 'look', input: {} }] }
    const { ending } = withCall([more, more, more, more], task)
    expect(await ending).toMatchObject({
      outcome: 'failed',
      content: parts(/\(turn_limit\)\. More\. \nIts run/),
    })
  })

  it('given calls that ask, when the run waits, then the client learns for what, and where to decide', async () => {
    const pay = { name: 'pay', input: { euros: 99 } }
    const look = { toolCalls: [{ name: 'look', input: {} }] }
    const { ending, ledger, reports, runtime } = withCall(
      [{ toolCalls: [pay, pay] }, look, { text: 'Paid.' }],
      task,
    )
    const text =
      /^The agent waits for a person who decides about pay, pay\. Its run is [0-9a-f-]{36}: decide there/
    expect(await ending).toMatchObject({ outcome: 'failed', content: parts(text) })
    // The call is over: the client hears nothing of what the run does then.
    const [{ runId } = { runId: undefined }] = await Array.fromAsync(ledger.runs())
    const run = runtime.resume(runId ?? '')
    const { pendingApprovals } = await run.result
    for (const { toolCallId } of pendingApprovals) await run.approve(toolCallId, { by: 'ada' })
    expect(await runtime.resume(runId ?? '').result).toMatchObject({ text: 'Paid.' })
    expect(reports).toEqual([{ message: 'calls pay, pay' }])
  })
})
