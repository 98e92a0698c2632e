// Which of the events that decide nothing a run records: what is left out changes no request, no result and no law.
import { map, throwError } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Model,
  type RunOptions,
  type RuntimeEvent,
  type RuntimeOptions,
  type Tool,
} from '@tallystick/core'

import { auditAll } from '@tallystick/core/machine'
import type { RecordingPolicy } from '@tallystick/core/vocabulary'
import { checkLaws, manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'
import { type RecordingPart, recordingParts } from '../src/events/agent-definition.ts'

const usage = { inputTokens: 20, outputTokens: 30 }
const steps = [
  {
    reasoning: 'I had better look.',
    text: 'Looking.',
    toolCalls: [
      { name: 'look', input: { at: 'home' } },
      { name: 'fail', input: {} },
    ],
    usage,
  },
  { reasoning: 'That was it.', text: 'Done.', usage },
]
const raw = { input_tokens: 20 }

/** A script whose provider reports its usage in words of its own, too. */
function vendor(): Model & Pick<ReturnType<typeof scriptedModel>, 'requests'> {
  const model = scriptedModel(steps)
  return {
    ...model,
    requests: model.requests,
    stream: (request, context) =>
      model
        .stream(request, context)
        .pipe(map((signal) => (signal.type === 'model_usage' ? { ...signal, raw } : signal))),
  }
}

interface Said {
  readonly agent?: RecordingPolicy
  readonly runtime?: RecordingPolicy
  readonly run?: RunOptions
  readonly limits?: RuntimeOptions['limits']
}

async function played({ agent: recording, runtime, run: own = {}, limits }: Said) {
  const [clock, ledger, model] = [manualClock(), memoryLedger(), vendor()]
  const look = testTool({
    name: 'look',
    run: (_run, report) => {
      report.progress({ done: 1 })
      return 'Nobody.'
    },
  })
  const fail: Tool = {
    ...testTool({ name: 'fail' }),
    run: () => throwError(() => new Error('No such order', { cause: new TypeError('order is undefined') })),
  }
  const reports: unknown[] = []
  const host = { clock, report: (error: unknown) => void reports.push(error) }
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model, tools: [look, fail], recording })
  const handle = createRuntime({ ledger, host, recording: runtime, limits }).run(agent, 'Go.', own)
  const result = await waitUntilSettled(clock, handle.result)
  const events = await recorded(ledger, handle.id)
  expect(auditAll(events)?.phase).toBe('done')
  expect(checkLaws(events)).toEqual([])
  expect(reports).toMatchObject([{ message: 'No such order' }])
  return { agent, result, events, requests: model.requests }
}

/** Which parts a record holds. */
function partsIn(events: readonly RuntimeEvent[]): readonly RecordingPart[] {
  const found: Readonly<Record<RecordingPart, boolean>> = {
    textDeltas: ofType(events, 'assistant_text_delta').length > 0,
    toolInputDeltas: ofType(events, 'tool_input_delta').length > 0,
    toolProgress: ofType(events, 'tool_progress').length > 0,
    reasoning: ofType(events, 'assistant_reasoning_delta').length > 0,
    rawUsage: ofType(events, 'usage_updated').some((event) => event.raw !== undefined),
    toolErrors: ofType(events, 'tool_result').some(
      ({ error }) =>
        error?.includes('recording.spec') && error.includes('Caused by: TypeError: order is undefined'),
    ),
  }
  return recordingParts.filter((part) => found[part])
}

const none: RecordingPolicy = {
  textDeltas: false,
  toolInputDeltas: false,
  toolProgress: false,
  reasoning: false,
  rawUsage: false,
  toolErrors: false,
}

describe('what a run records', () => {
  it('is all of it, where nothing is said', async () => {
    const { agent, events } = await played({})
    expect(partsIn(events)).toEqual(recordingParts)
    expect(agent.definition.policy).not.toHaveProperty('recording')
    expect(ofType(events, 'run_started')[0]).not.toHaveProperty('recording')
  })

  it.each(recordingParts)('is all but %s, where an agent says so', async (part) => {
    const whole = await played({})
    const { agent, events, requests, result } = await played({ agent: { [part]: false } })
    expect(partsIn(events)).toEqual(recordingParts.filter((other) => other !== part))
    expect(agent.definition.policy?.recording).toEqual({ [part]: false })
    expect(result.text).toBe('Done.')
    // Calls are named by their run.
    const plain = (sent: typeof requests): string => JSON.stringify(sent).replaceAll(/call_[^"]+/g, 'call')
    expect(plain(requests)).toBe(plain(whole.requests))
  })

  it('is said by the run over the runtime, and by the runtime over the agent, part by part', async () => {
    const agent = {
      textDeltas: false,
      toolInputDeltas: false,
      toolProgress: false,
      reasoning: false,
      toolErrors: false,
    }
    const runtime = { toolProgress: true, reasoning: false, rawUsage: false }
    const run = { recording: { reasoning: true, toolInputDeltas: undefined } }
    const { events } = await played({ agent, runtime, run })
    expect(partsIn(events)).toEqual(['toolProgress', 'reasoning'])
    expect(ofType(events, 'run_started')[0]?.recording).toEqual({
      ...{ toolProgress: true, reasoning: true, rawUsage: false },
    })
  })

  it('keeps the reasoning of a message, which a provider may need again', async () => {
    const { events, requests } = await played({ run: { recording: none } })
    expect(partsIn(events)).toEqual([])
    const [message] = ofType(events, 'assistant_message_finished')
    expect(message?.parts[0]).toEqual({ type: 'reasoning', text: 'I had better look.' })
    expect(requests[1]?.messages[1]).toMatchObject({ parts: [{ type: 'reasoning' }, {}, {}, {}] })
  })

  it('has the pieces of replies all the same where a limit counts tokens by them', async () => {
    const { events } = await played({ run: { recording: none }, limits: { maxTotalTokens: 100_000 } })
    expect(partsIn(events)).toEqual(['textDeltas', 'toolInputDeltas', 'reasoning'])
  })

  it.each<readonly [string, () => unknown]>([
    [
      'defineAgent (agent): recording.reasoning is a text',
      () => played({ agent: { reasoning: 'no' as never } }),
    ],
    ['createRuntime: recording.text is not an option', () => played({ runtime: { text: false } as never })],
    ['run: recording.rawUsage is 0', () => played({ run: { recording: { rawUsage: 0 as never } } })],
  ])('is refused: %s', async (message, play) => {
    await expect(play()).rejects.toThrow(message)
  })
})

it.each([undefined, false])(
  'has the stack of a check that throws, unless toolErrors is %s',
  async (toolErrors) => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const check = () => Promise.reject(new Error('The rules are down', { cause: new TypeError('no host') }))
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Done.' }])
    const tools = [testTool({ name: 'pay', check })]
    const agent = defineAgent({
      name: 'agent',
      instructions: 'Act.',
      model,
      tools,
      recording: { toolErrors },
    })
    const run = createRuntime({ ledger, host: { clock, report: () => {} } }).run(agent, 'Go.')
    await waitUntilSettled(clock, run.result)
    const events = await recorded(ledger, run.id)
    const [collected] = ofType(events, 'tool_requests_collected')
    const { outcome, text, error } = collected!.calls[0]!.refusal!
    expect({ outcome, text }).toMatchObject({
      outcome: 'denied',
      text: expect.stringContaining('The rules are down'),
    })
    const told = expect.stringMatching(/recording\.spec[^]*Caused by: TypeError: no host/)
    expect(error).toEqual(toolErrors === false ? undefined : told)
    expect(JSON.stringify(model.requests)).not.toContain('no host')
  },
)
