import { agentTool, createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { isAgentTool } from '@tallystick/core/kit'
import { manualClock, scriptedModel } from '@tallystick/core/testing'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { defineTool } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { servedAgent } from '../../src/mcp/serve/served-agent.ts'
import { tick } from './connected.ts'
import { ownTools } from './servers/own-tools.ts'

type Steps = Parameters<typeof scriptedModel>[0]

/** An agent of these steps that is called once, as a client calls it, and what is heard of it. */
function withCall(steps: Steps, input: JsonObject, { isLate = false, context = {} } = {}) {
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
  })
  const ledger = memoryLedger()
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
  const tool = agentTool(agent)
  if (!isAgentTool(tool)) throw new Error('no tool of an agent')
  const abort = new AbortController()
  if (isLate) abort.abort()
  const reports: Json[] = []
  const ending = servedAgent(tool, runtime, {
    ...{ input, context, signal: abort.signal, timers: manualClock() },
    progress: (data) => void reports.push(data),
  })
  return { ending, abort, reports, stopped, seen, ledger }
}

const task = { task: 'Help.' }
const parts = (text: string | RegExp): unknown => [
  { type: 'text', text: expect.stringMatching(text) as string },
]

describe('an agent that a client calls', () => {
  it('given a task, when it has answered, then its answer is the result, and each reply with calls was reported', async () => {
    const { ending, reports, seen } = withCall(
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
    expect(seen).toEqual([{ user: 'ada' }])
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
    const { ending } = withCall([{ toolCalls: [pay, pay] }], task)
    const text =
      /^The agent waits for a person who decides about pay, pay\. Its run is [0-9a-f-]{36}: decide there/
    expect(await ending).toMatchObject({ outcome: 'failed', content: parts(text) })
  })
})
