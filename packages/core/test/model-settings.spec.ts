import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type AgentOptions,
  type RunOptions,
} from '@tallystick/core'
import type { ModelSettings } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { mergeSettings } from '../src/events/model-request.ts'
import { checkedRun, ofType, recorded } from './stage.ts'

const precise: ModelSettings = {
  temperature: 0.2,
  stop: ['END'],
  providerOptions: { acme: { tier: 'flex', trace: { level: 1 } }, other: { a: 1 } },
}

const ask = testTool({ name: 'ask', check: () => ({ kind: 'ask' }) })

async function play(own: Partial<AgentOptions>, options?: RunOptions, ledger = memoryLedger()) {
  const clock = manualClock()
  const model = scriptedModel([{ toolCalls: [{ name: 'ask', input: {} }] }, { text: 'Done.' }])
  const agent = defineAgent({ name: 'writer', instructions: 'Write.', model, tools: [ask], ...own })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const run = runtime.run(agent, 'Go.', options)
  const waiting = await waitUntilSettled(clock, run.result)
  return { model, runtime, agent, ledger, clock, run, waiting }
}

describe('settings of a model', () => {
  it('are sent with each call: those of the run over those of the agent, each alone', async () => {
    const { model, run, ledger } = await play(
      { modelSettings: precise },
      {
        modelSettings: {
          ...{ temperature: 0, seed: 7, topP: undefined },
          providerOptions: { acme: { tier: 'priority' } },
        },
      },
    )
    expect(model.requests[0]?.modelSettings).toEqual({
      ...{ temperature: 0, seed: 7, stop: ['END'] },
      providerOptions: { acme: { tier: 'priority', trace: { level: 1 } }, other: { a: 1 } },
    })
    const [started] = ofType(checkedRun(await recorded(ledger, run.id)), 'run_started')
    expect(started?.definition.modelSettings).toEqual(precise)
    expect(started?.modelSettings).toEqual({
      ...{ temperature: 0, seed: 7, providerOptions: { acme: { tier: 'priority' } } },
    })
  })

  it('are the same for a process that takes the run further', async () => {
    const ledger = memoryLedger()
    const { run, waiting } = await play({ modelSettings: precise }, { modelSettings: { seed: 7 } }, ledger)
    const clock = manualClock()
    const model = scriptedModel([{ text: 'Done.' }])
    const agent = defineAgent({
      ...{ name: 'writer', instructions: 'Write.', model, tools: [ask], modelSettings: precise },
    })
    const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
    const again = runtime.resume(run.id)
    await again.approve(waiting.pendingApprovals[0]?.toolCallId ?? '', { by: 'ada' })
    expect(await waitUntilSettled(clock, again.result)).toMatchObject({ reason: 'answered' })
    expect(model.requests.map(({ modelSettings }) => modelSettings)).toEqual([{ ...precise, seed: 7 }])
    checkedRun(await recorded(ledger, run.id))
  })

  it('of a run hold for the agent that takes over as well', async () => {
    const clock = manualClock()
    const ledger = memoryLedger()
    const second = scriptedModel([{ text: 'Mine.' }])
    const expert = defineAgent({
      ...{
        name: 'expert',
        instructions: 'Know.',
        model: second,
        modelSettings: { temperature: 1, topP: 0.5 },
      },
    })
    const agent = defineAgent({
      ...{ name: 'front', instructions: 'Ask.', handoffs: [expert] },
      model: scriptedModel([{ toolCalls: [{ name: 'transfer_to_expert', input: {} }] }]),
    })
    const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.', {
      modelSettings: { temperature: 0 },
    })
    await waitUntilSettled(clock, run.result)
    expect(second.requests[0]?.modelSettings).toEqual({ temperature: 0, topP: 0.5 })
    checkedRun(await recorded(ledger, run.id))
  })

  it('make another definition, and another request', async () => {
    const digestOf = async (own: Partial<AgentOptions>, options?: RunOptions) => {
      const { run, ledger, agent } = await play(own, options)
      const [call] = ofType(await recorded(ledger, run.id), 'model_call_started')
      return [agent.definition.digest, call?.requestDigest]
    }
    const plain = await digestOf({})
    const ofAgent = await digestOf({ modelSettings: { seed: 7 } })
    const ofRun = await digestOf({}, { modelSettings: { seed: 7 } })
    expect(ofAgent[0]).not.toBe(plain[0])
    expect(ofRun[0]).toBe(plain[0])
    expect(new Set([plain[1], ofAgent[1], ofRun[1]]).size).toBe(3)
    expect(await digestOf({ modelSettings: {} }, { modelSettings: { seed: undefined } })).toEqual(plain)
  })

  it.each<[object, RegExp]>([
    [{ top_p: 0.5 }, /modelSettings\.top_p is not an option\. Did you mean modelSettings\.topP\?/],
    [{ stopSequences: ['END'] }, /Did you mean modelSettings\.stop\?/],
    [{ temperature: '0.2' }, /modelSettings\.temperature is a text, '0\.2'; expected a finite number/],
    [{ temperature: Number.NaN }, /modelSettings\.temperature is NaN/],
    [{ topP: 2 }, /modelSettings\.topP is 2; expected a number from 0 to 1/],
    [{ topP: -0.1 }, /modelSettings\.topP is -0\.1; expected a number from 0 to 1/],
    [{ topP: '0.5' }, /modelSettings\.topP is a text, '0\.5'; expected a number from 0 to 1/],
    [{ stop: 'END' }, /modelSettings\.stop is a text; expected a list/],
    [{ stop: [''] }, /modelSettings\.stop\[0\] is an empty text/],
    [{ seed: 1.5 }, /modelSettings\.seed is 1\.5; expected a whole number/],
    [
      { providerOptions: { acme: 'flex' } },
      /modelSettings\.providerOptions\.acme is a text; expected an object/,
    ],
    [{ providerOptions: { acme: { at: () => 1 } } }, /providerOptions\.acme .* an object of JSON/],
  ])('that no model could be told are refused where they are given: %j', async (modelSettings, words) => {
    await expect(play({ modelSettings })).rejects.toThrow(words)
    await expect(play({}, { modelSettings })).rejects.toThrow(words)
  })

  it('that are beside the other options are found', () => {
    const model = scriptedModel([])
    const wrong = { name: 'a', instructions: '', model, temperature: 0 }
    expect(() => defineAgent(wrong)).toThrow(
      /temperature is not an option\. Did you mean modelSettings\.temperature\?/,
    )
  })
})

const flex = { acme: { tier: 'flex', trace: 1 } }

describe('the settings of a run over those of its agent', () => {
  it('are those of the one that has any', () => {
    expect(mergeSettings({ seed: 1 }, undefined)).toEqual({ seed: 1 })
    expect(mergeSettings(undefined, { seed: 2 })).toEqual({ seed: 2 })
    expect(mergeSettings(undefined, undefined)).toBeUndefined()
  })

  it('win each alone; what the run leaves undefined is as the agent says', () => {
    const merged = mergeSettings(
      { seed: 1, topP: 1, stop: ['a'] },
      { seed: 2, topP: undefined, temperature: 0 },
    )
    expect(merged).toStrictEqual({ seed: 2, topP: 1, stop: ['a'], temperature: 0 })
  })

  it('win option by option of each provider', () => {
    const agent = { providerOptions: { ...flex, other: { a: 1 } } }
    const run = { providerOptions: { acme: { tier: 'priority' }, third: { b: 2 } } }
    expect(mergeSettings(agent, run)).toStrictEqual({
      providerOptions: { acme: { tier: 'priority', trace: 1 }, other: { a: 1 }, third: { b: 2 } },
    })
    expect(mergeSettings({ providerOptions: flex }, { seed: 1 })).toStrictEqual({
      ...{ providerOptions: flex, seed: 1 },
    })
    expect(mergeSettings({ seed: 1 }, { providerOptions: flex })).toStrictEqual({
      ...{ providerOptions: flex, seed: 1 },
    })
  })

  it('take nothing that a provider would inherit by its name', () => {
    const run = JSON.parse('{"providerOptions":{"toString":{"a":1},"__proto__":{"b":2}}}') as object
    expect(JSON.stringify(mergeSettings({ providerOptions: flex }, run))).toBe(
      '{"providerOptions":{"acme":{"tier":"flex","trace":1},"toString":{"a":1},"__proto__":{"b":2}}}',
    )
  })
})
