import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { defineAgent, type Tool } from '@tallystick/core'
import { given, manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import type { CallVerdict, Fact, Signal, ToolSignal } from '@tallystick/core/vocabulary'
import type { CallStatus, ExecutingState } from '../src/machine/state.ts'
import { Effects } from '../src/runtime/effects.ts'
import type { RunContext } from '../src/runtime/run-context.ts'
import { begun, called, collected, executing, replyFinished, requested } from './pages.ts'

/** The effects of an agent with one tool, which post to this list. */
function effectsWith(tool: Tool, posted: Signal[] = []): Effects {
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model: scriptedModel([]), tools: [tool] })
  return new Effects({
    findAgent: () => agent,
    findModel: () => undefined,
    host: { clock: manualClock(), random: () => 0, report: () => {} },
    state: undefined,
    context: undefined,
    results: undefined,
    post: (signal: Signal) => posted.push(signal),
    onFault: () => {},
  } as unknown as RunContext)
}

/** Effects of a turn with three calls, whose tools run until they are given up. */
function followed() {
  const running = new Set<string>()
  const started: string[] = []
  const endless = (toolCallId: string): Observable<ToolSignal> =>
    new Observable(() => {
      running.add(toolCallId)
      started.push(toolCallId)
      return () => void running.delete(toolCallId)
    })
  const tool = {
    ...testTool({ name: 'look' }),
    run: (call: { toolCallId: string }) => endless(call.toolCallId),
  }
  const effects = effectsWith(tool)
  const state = given(executing(['look', 'look', 'look'])).state as ExecutingState
  const follow = (...statuses: readonly CallStatus[]): readonly boolean[] => {
    const calls = state.calls.map((call, place) => {
      const status = statuses[place] as CallStatus
      return { ...call, status, attempts: status === 'ready' ? 0 : 1 }
    })
    effects.follow({ ...state, calls }, { draining: false })
    return calls.map(({ toolCallId }) => running.has(toolCallId))
  }
  return { follow, started, effects }
}

describe('the effects of a turn with several calls', () => {
  it('begin with a call, end with it, and leave the others as they are', () => {
    const { follow, started, effects } = followed()
    expect(follow('started', 'ready', 'ready')).toEqual([true, false, false])
    expect(follow('started', 'started', 'ready')).toEqual([true, true, false])
    expect(follow('settled', 'started', 'ready')).toEqual([false, true, false])
    expect(follow('settled', 'deferred', 'started')).toEqual([false, false, true])
    expect(follow('settled', 'deferred', 'started')).toEqual([false, false, true])
    expect(follow('settled', 'settled', 'settled')).toEqual([false, false, false])
    expect(started).toHaveLength(3)
    effects.stopAll()
  })

  it('are given up all at once', () => {
    const { follow, effects } = followed()
    follow('started', 'ready', 'ready')
    follow('started', 'started', 'started')
    effects.stopAll()
    expect(follow('started', 'started', 'started')).toEqual([false, false, false])
  })

  it('report nothing once they are given up: a check that ends late', async () => {
    const calls = [requested(1)]
    const reply = [...begun(), called(), ...calls, replyFinished(calls)]
    const checked = async (facts: readonly Fact[]): Promise<readonly string[]> => {
      const posted: Signal[] = []
      const { promise, resolve } = Promise.withResolvers<CallVerdict>()
      const effects = effectsWith(testTool({ name: 'look', check: () => promise }), posted)
      effects.follow(given(reply).state!, { draining: false })
      effects.follow(given([...reply, ...facts]).state!, { draining: false })
      resolve({ kind: 'run' })
      for (let turn = 0; turn < 50; turn++) await Promise.resolve()
      return posted.map(({ type }) => type)
    }
    expect(await checked([])).toEqual(['calls_checked'])
    expect(await checked([collected(calls)])).toEqual([])
  })
})
