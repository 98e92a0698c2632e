import { isDeepStrictEqual } from 'node:util'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type AgentOptions,
  type RunOptions,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { evolve, toTranscript } from '@tallystick/core/machine'
import { manualClock, scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { foldTo, rebuildRequest } from '@tallystick/ledger'
import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const usage = { inputTokens: 100, outputTokens: 10 }
const looks: ScriptedStep = { text: 'I look. ', toolCalls: [{ name: 'look', input: { at: 'tea' } }], usage }
const answers: ScriptedStep = { text: 'It is tea.', usage }

interface Recorded {
  readonly model: ReturnType<typeof scriptedModel>
  /** The state after each event. */
  readonly moments: readonly { readonly event: RuntimeEvent; readonly state: RunState }[]
}

/** A run that the real runtime drives, with what its model was sent. */
async function record(
  steps: readonly ScriptedStep[],
  own: Partial<AgentOptions<unknown>> = {},
  options: RunOptions = {},
): Promise<Recorded> {
  const [model, ledger] = [scriptedModel(steps), memoryLedger()]
  const tools = [testTool({ name: 'look' })]
  const agent = defineAgent<unknown>({ name: 'looker', instructions: 'Look.', model, tools, ...own })
  const run = createRuntime({ ledger, host: { clock: manualClock() } }).run(agent, 'What is it?', options)
  const { seq: last } = await run.result
  const events = await Array.fromAsync(ledger.read(run.id))
  const states = await Promise.all(
    Array.from({ length: last }, (_, index) => foldTo(ledger, run.id, index + 1)),
  )
  return { model, moments: events.map((event, index) => ({ event, state: states[index]! })) }
}

const isCall = ({ event }: Recorded['moments'][number]): boolean => event.type === 'model_call_started'

describe('the request of a state', () => {
  it('is the one that the model was sent, with the digest on record, as long as its call is in flight', async () => {
    const { model, moments } = await record([looks, answers], { maxOutputTokens: 50 })
    const sent = moments.filter(isCall).map(({ state }) => rebuildRequest(state))
    expect(sent.map(({ request }) => request)).toEqual(model.requests)
    const inFlight = moments.filter(({ state }) => state.phase === 'streaming')
    expect(inFlight.length).toBeGreaterThan(6)
    for (const { event, state } of inFlight) {
      const call = moments.findLast((moment) => isCall(moment) && moment.event.seq <= event.seq)!.event
      expect(rebuildRequest(state)).toMatchObject({
        requestDigest: call.type === 'model_call_started' ? call.requestDigest : '',
        request: model.requests[event.turn - 1],
      })
    }
  })

  it('is, before a call, the one that the call then carries: also the last one at a limit, without tools', async () => {
    const limits = { maxTurns: 3, maxTotalTokens: 2_000 }
    const { model, moments } = await record([looks, looks, answers], {}, { limits })
    const before = moments.flatMap((moment, index) => (isCall(moment) ? [moments[index - 1]!.state] : []))
    const due = before.map((state) => rebuildRequest(state))
    expect(due.map(({ request }) => request)).toEqual(model.requests)
    expect(due.map(({ requestDigest }) => requestDigest)).toEqual([undefined, undefined, undefined])
    expect(due.map(({ request }) => request.toolChoice.type)).toEqual(['auto', 'auto', 'none'])
    const [first = 0, second = 0, last = 0] = due.map(({ request }) => request.maxOutputTokens)
    // The finalizing call has what the calls before it have left for it.
    expect([first > second, second > 0, last > second]).toEqual([true, true, true])
  })

  it('is what a call would carry where none is due: the definition in force, and the transcript with placeholders', async () => {
    const { moments } = await record([looks, answers])
    const collected = moments.find(({ event }) => event.type === 'tool_requests_collected')!.state
    const { model, request, requestDigest } = rebuildRequest(collected)
    expect({ model: model.modelId, requestDigest }).toEqual({ model: 'scripted-1', requestDigest: undefined })
    expect(request).toMatchObject({
      instructions: 'Look.',
      tools: [{ name: 'look' }],
      toolChoice: { type: 'auto' },
    })
    expect(request.messages).toEqual(toTranscript(collected))
    expect(request.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [{ name: 'look', outcome: 'skipped' }],
    })
  })

  it('is there for every event of whatever run, and carries its transcript', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const { events } = await playProgram(program)
        let state: RunState | undefined
        for (const event of events) {
          state = evolve(state, event)
          const { request, requestDigest } = rebuildRequest(state)
          const isInFlight = requestDigest !== undefined
          expect(isInFlight).toBe(state.phase === 'streaming')
          expect(isInFlight || isDeepStrictEqual(request.messages, toTranscript(state))).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  })
})
