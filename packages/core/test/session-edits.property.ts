import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  joinText,
  memoryLedger,
  type Message,
  type OnInput,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { checkedRun, recorded } from './stage.ts'

const said = (messages: readonly Message[] = []): readonly string[] =>
  messages.map((message) =>
    message.role === 'tool' ? 'results' : `${message.role}: ${joinText(message.parts)}`,
  )

const requireSame = (seen: readonly string[], wanted: readonly string[]): void => expect(seen).toEqual(wanted)

const step = fc.oneof(
  fc.record({ do: fc.constant('append' as const), count: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constantFrom('pop' as const, 'clear' as const, 'branch' as const) }),
  fc.record({ do: fc.constant('run' as const), tool: fc.boolean(), last: fc.option(fc.nat(3)) }),
  fc.record({ do: fc.constant('race' as const), other: fc.constantFrom('append' as const, 'run' as const) }),
)

it('a session is the list that its runs and edits make of it, from whichever process, and each of them keeps the laws', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, fc.boolean()), { maxLength: 10 }), async (steps) => {
      const [ledger, clock] = [memoryLedger(), manualClock()]
      const settle = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise)
      const look = testTool({ name: 'look' })
      const start = () => {
        const calls: boolean[] = []
        const model = scriptedModel(
          Array.from({ length: 40 }, () => () => {
            const asks = calls.shift() ?? false
            return asks ? { text: 'I look.', toolCalls: [{ name: 'look', input: {} }] } : { text: 'Done.' }
          }),
        )
        const agent = defineAgent({ name: 'agent', instructions: 'Act.', model, tools: [look] })
        const host = { clock, report: () => {} }
        return { agent, calls, runtime: createRuntime({ ledger, agents: [agent], host }) }
      }
      const processes = [start(), start()] as const
      let id = 's0'
      let expected: string[] = []
      for (const [index, [each, isSecond]] of steps.entries()) {
        const { agent, calls, runtime } = processes[isSecond ? 1 : 0]
        const session = runtime.session(id)
        const text = `message ${index}`
        if (each.do === 'append') {
          const messages = Array.from(
            { length: each.count },
            () => ({ role: 'user', content: text }) as const,
          )
          await settle(session.append(messages))
          expected.push(...messages.map(({ content }) => `user: ${content}`))
        } else if (each.do === 'pop') {
          const count = expected.at(-1) === 'results' ? 2 : 1
          requireSame(said(await settle(session.pop())), expected.slice(-count))
          expected = expected.slice(0, -count)
        } else if (each.do === 'clear') {
          requireSame(said(await settle(session.clear())), expected)
          expected = []
        } else if (each.do === 'branch') {
          const isBegun = (await session.history()) !== undefined
          if (isBegun) await settle(session.branch((id = `s${index + 1}`)))
        } else if (each.do === 'run') {
          calls.push(each.tool)
          const { last } = each
          const onInput: OnInput = (history, input) => {
            const from = Math.max(0, history.length - (last ?? 0))
            return [...history.slice(history[from]?.role === 'tool' ? from + 1 : from), input]
          }
          const run = runtime.run(agent, text, { sessionId: id, ...(last !== null && { onInput }) })
          await settle(run.result)
          if (last !== null) {
            const from = Math.max(0, expected.length - last)
            expected = expected.slice(expected[from] === 'results' ? from + 1 : from)
          }
          const looked = each.tool ? ['assistant: I look.', 'results'] : []
          expected.push(`user: ${text}`, ...looked, 'assistant: Done.')
        } else if ('other' in each) {
          // Two processes at once: one comes first, and the other builds on it or is refused.
          const mine = processes[0].runtime.session(id).append({ role: 'user', content: `${text} a` })
          const theirs =
            each.other === 'append'
              ? processes[1].runtime.session(id).append({ role: 'user', content: `${text} b` })
              : processes[1].runtime.run(processes[1].agent, `${text} b`, { sessionId: id }).result
          const ends = await settle(Promise.allSettled([mine, theirs]))
          const now = said((await session.history())?.messages)
          const added = [
            ...(ends[0].status === 'fulfilled' ? [`user: ${text} a`] : []),
            ...(ends[1].status === 'fulfilled' ? [`user: ${text} b`] : []),
            ...(ends[1].status === 'fulfilled' && each.other === 'run' ? ['assistant: Done.'] : []),
          ]
          if (added.length === 0) throw new Error('both were refused')
          requireSame(now.slice(0, expected.length), expected)
          requireSame(now.slice(expected.length).toSorted(), added.toSorted())
          expected = [...now]
        }
        expect(said((await session.history())?.messages)).toEqual(
          each.do === 'branch' ? said((await runtime.session(session.id).history())?.messages) : expected,
        )
      }
      expect(said((await processes[0].runtime.session(id).history())?.messages)).toEqual(expected)
      const places = new Map<string, number[]>()
      for await (const { runId } of ledger.runs()) {
        const [first] = checkedRun(await recorded(ledger, runId))
        if (first?.type !== 'run_started' || first.sessionId === undefined)
          throw new Error('a run without a session')
        places.set(first.sessionId, [...(places.get(first.sessionId) ?? []), first.sessionPlace ?? 0])
      }
      for (const taken of places.values())
        expect(taken.toSorted((a, b) => a - b)).toEqual(taken.map((_, index) => index + 1))
    }),
    { numRuns: tries(300) },
  )
})
